// Reads a file of JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace syncline {

// Throws IoError that names the file and, if its text is not JSON, the line and column. `advice`: for a file that
// cannot be read.
nlohmann::ordered_json read_json_file(const std::string& path, const char* advice);

}  // namespace syncline
