// Text that comes from a file, for the terminal.
#pragma once

#include <string>

namespace syncline::tools {

// What could steer a terminal becomes question marks.
inline std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

}  // namespace syncline::tools
