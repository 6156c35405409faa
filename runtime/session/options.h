// The options within "syncline" of keras.json, and the environment variables that override them: one table of both.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "syncline/distributed/keras_json.h"

namespace syncline {

// All of the file's. Throws ValueError naming file and key.
void read_options(const nlohmann::ordered_json& options, const std::string& path, KerasJson& found);
// Those that are set. A variable's text is what stands in the file, without quotes. Throws ValueError naming it.
void read_option_variables(const Getenv& getenv, KerasJson& found);

}  // namespace syncline
