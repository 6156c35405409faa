// Makes text from files safe for terminals and one-line messages.
#pragma once

#include <string>

namespace syncline {

// Replaces control characters by question marks, newlines too unless keep_newlines is set.
inline std::string printable(std::string text, bool keep_newlines = false) {
  for (char& c : text)
    if ((static_cast<unsigned char>(c) < 0x20 && !(keep_newlines && c == '\n')) || c == 0x7f) c = '?';
  return text;
}

}  // namespace syncline
