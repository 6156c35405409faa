// What `syncline doctor` finds: one line, how bad it is, and what to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncline::tools {

enum class Level : std::uint8_t { kOk, kWarn, kFail };  // kFail: a training would not run, or not end right

struct Finding {
  Level level = Level::kOk;
  std::string about;   // "launch", "processors": a word
  std::string text;    // what is so, with its values
  std::string advice;  // what to do about it; "" for kOk
  friend bool operator==(const Finding&, const Finding&) = default;
};

using Findings = std::vector<Finding>;

}  // namespace syncline::tools
