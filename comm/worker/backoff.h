// Backoff: the waits of a polling thread between two polls. At first the thread spins, for waits of a few microseconds.
// Then it yields the core between polls. Then it sleeps between polls, so that a long wait costs little. Use one object
// per wait, from one thread.
#pragma once

#include <sched.h>

#include <chrono>
#include <thread>

namespace syncline::comm {

class Backoff {
 public:
  // Call it between two polls.
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
  // Whether it still spins.
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
