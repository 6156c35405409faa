// Finds arrays of a file by name.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "io/arrays/array_file.h"

namespace syncline::tools {

// Throws ValueError if the file has no array of this name.
inline std::size_t find_entry(const std::string& path, const io::ArrayFile& file, const std::string& name) {
  const auto& entries = file.entries();
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.name == name; });
  if (found == entries.end())
    fail<ValueError>("'", path, "' has no array '", name, "'; syncline stat lists its arrays");
  return static_cast<std::size_t>(found - entries.begin());
}

// The indices of the named arrays, in the order of `names`; all arrays if there are no names.
inline std::vector<std::size_t> select_entries(const std::string& path, const io::ArrayFile& file,
                                               const std::vector<std::string>& names) {
  std::vector<std::size_t> selected;
  for (const std::string& name : names) selected.push_back(find_entry(path, file, name));
  for (std::size_t i = 0; names.empty() && i < file.entries().size(); ++i) selected.push_back(i);
  return selected;
}

}  // namespace syncline::tools
