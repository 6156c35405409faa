// Text that comes from a file, for the terminal and for messages of one line.
#pragma once

#include <string>

namespace syncline {

// What could steer a terminal becomes question marks; so do ends of lines unless they are to stay.
inline std::string printable(std::string text, bool keep_newlines = false) {
  for (char& c : text)
    if ((static_cast<unsigned char>(c) < 0x20 && !(keep_newlines && c == '\n')) || c == 0x7f) c = '?';
  return text;
}

}  // namespace syncline
