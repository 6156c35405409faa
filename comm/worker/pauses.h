// Pauses: how a thread waits that looks again and again for what another one does. At first it looks without a break,
// which is what a few microseconds of waiting want; then it lets others run in between; then it sleeps in between, so
// that a long wait costs nothing. One object a wait, one thread an object.
#pragma once

#include <sched.h>

#include <chrono>
#include <thread>

namespace syncline::comm {

class Pauses {
 public:
  // Between two looks.
  void next() {
    if (hot()) return static_cast<void>(++looks_);
    const Clock::time_point now = Clock::now();
    if (looks_ == kHotLooks) {
      begin_ = now;
      ++looks_;
    }
    if (now - begin_ < kYieldFor) sched_yield();
    else std::this_thread::sleep_for(kSleep);
  }
  // Still without breaks.
  bool hot() const { return looks_ < kHotLooks; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kHotLooks = 200;
  static constexpr std::chrono::milliseconds kYieldFor{5};
  static constexpr std::chrono::microseconds kSleep{50};

  int looks_ = 0;
  Clock::time_point begin_;
};

}  // namespace syncline::comm
