#include "runtime/session/json_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "syncline/error.h"

namespace syncline {
namespace {

// Line and column of a byte. `byte` and both results count from 1.
std::string position(const std::string& text, std::size_t byte) {
  const std::size_t end = std::min(byte == 0 ? 0 : byte - 1, text.size());
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
  const std::size_t newline = text.substr(0, end).rfind('\n');
  return join_text("line ", line, ", column ", newline == std::string::npos ? end + 1 : end - newline);
}

}  // namespace

nlohmann::ordered_json read_json_file(const std::string& path, const char* advice) {
  std::ifstream file(path);
  const auto refuse = [&](const char* why) { fail<IoError>(path, ": cannot be read: ", why, "; ", advice); };
  if (!file) refuse(std::strerror(errno));
  std::string text;
  try {
    text.assign(std::istreambuf_iterator<char>(file), {});
  } catch (const std::ios_base::failure&) {
    refuse("it is a folder, or its disk fails");
  }
  try {
    return nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    fail<IoError>(path, ": is not valid JSON at ", position(text, e.byte), "; correct it, or remove it");
  } catch (const nlohmann::json::exception&) {
    fail<IoError>(path, ": has a number beyond those of float64; correct it, or remove it");
  }
}

}  // namespace syncline
