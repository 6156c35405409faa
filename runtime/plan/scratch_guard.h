// ScratchGuard: finds kernels that write behind their scratch. A few bytes behind the scratch must keep their value
// while the step runs. Plans have guards if verifies_plans() (runtime/schedule/schedule.h). Sanitizers do not see such
// writes, because the scratch is a part of the plan's arena.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "syncline/error.h"

namespace syncline {

class ScratchGuard {
 public:
  static constexpr std::size_t kBytes = 64;

  // `end`: of the scratch, in front of kBytes of guard; null: no guard.
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
