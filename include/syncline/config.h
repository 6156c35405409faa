// Keras's configuration: the defaults of options that a graph-building call leaves out.
#pragma once

#include <string>

#include "syncline/dtype.h"

#pragma GCC visibility push(default)
namespace syncline {

struct Config {
  DType floatx = DType::kFloat32;
  double epsilon = 1e-7;
  std::string image_data_format = "channels_last";
};

// The configuration of the calling thread's session (syncline/session.h).
Config& current_config();
// Sets what current_config() returns; called once, before main. Without a source the process has one configuration.
using ConfigSource = Config& (*)();
bool set_config_source(ConfigSource source);

}  // namespace syncline
#pragma GCC visibility pop
