// Keras's configuration, where options that are left out get their values from while a graph is built.
#pragma once

#include <string>

#include "syncline/dtype.h"

namespace syncline {

struct Config {
  DType floatx = DType::kFloat32;
  double epsilon = 1e-7;
  std::string image_data_format = "channels_last";
};

// Of the calling thread's session (syncline/session.h).
Config& current_config();
// Says where that is; called once, before main. Without it there is one configuration for the process.
using ConfigSource = Config& (*)();
bool set_config_source(ConfigSource source);

}  // namespace syncline
