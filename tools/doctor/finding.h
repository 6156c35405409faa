// One finding of `syncline doctor`: a line, its level, and advice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncline::tools {

enum class Level : std::uint8_t { kOk, kWarn, kFail };  // kFail: a training would not run, or not end correctly

struct Finding {
  Level level = Level::kOk;
  std::string about;   // one word: "launch", "processors"
  std::string text;    // the fact, with its values
  std::string advice;  // what to do; "" for kOk
  friend bool operator==(const Finding&, const Finding&) = default;
};

using Findings = std::vector<Finding>;

}  // namespace syncline::tools
