#include "syncline/config.h"

namespace syncline {
namespace {

Config& of_the_process() {
  static Config config;
  return config;
}

// Constant-initialized: set_config_source may run before any other initializer of this file.
constinit ConfigSource config_source = &of_the_process;

}  // namespace

Config& current_config() { return config_source(); }

bool set_config_source(ConfigSource source) {
  config_source = source;
  return true;
}

}  // namespace syncline
