// The options in the object "syncline" of keras.json, and the environment variables that override them. One table in
// options.cc defines both.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "syncline/distributed/keras_json.h"

namespace syncline {

// Reads the file's options into `found`. Throws ValueError that names the file and the key.
void read_options(const nlohmann::ordered_json& options, const std::string& path, KerasJson& found);
// Reads the variables that are set into `found`. Syntax: as in the file, without quotes. Throws ValueError that names
// the variable.
void read_option_variables(const Getenv& getenv, KerasJson& found);

}  // namespace syncline
