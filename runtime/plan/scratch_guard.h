// ScratchGuard: bytes behind the scratch of a step that no kernel writes. Plans have them where verifies_plans()
// (runtime/schedule/schedule.h): the scratch lies within the plan's arena, whose neighbours sanitizers cannot tell
// apart.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "syncline/error.h"

namespace syncline {

class ScratchGuard {
 public:
  static constexpr std::size_t kBytes = 64;

  // `end`: of the scratch, with kBytes behind it; or null, which is never checked.
  explicit ScratchGuard(std::byte* end) : end_(end) {
    if (end_ != nullptr) std::fill_n(end_, kBytes, kUntouched);
  }
  // Throws InternalError if the bytes have changed.
  void check(const std::string& step) const {
    if (end_ != nullptr && std::any_of(end_, end_ + kBytes, [](std::byte b) { return b != kUntouched; }))
      fail<InternalError>("plan: the step ", step, " wrote behind its scratch memory");
  }

 private:
  static constexpr std::byte kUntouched{0xa5};
  std::byte* end_;
};

}  // namespace syncline
