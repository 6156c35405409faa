// Backoff: the waits of a polling thread between two polls. At first the thread spins, for waits of a few microseconds.
// Then it yields the processor between polls. Then it sleeps between polls, so that a long wait costs little. Where
// ranks share processors, it yields at once: the rank that it waits for may need this one. Use one object per wait,
// from one thread.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace syncline::comm {

class Backoff {
 public:
  // Call it between two polls.
  void next() {
    if (hot()) return static_cast<void>(++looks_);
    const Clock::time_point now = Clock::now();
    if (begin_ == Clock::time_point{}) begin_ = now;
    if (now - begin_ < kYieldFor) sched_yield();
    else std::this_thread::sleep_for(kSleep);
  }
  // Whether it still spins.
  bool hot() const { return looks_ < hot_looks_.load(std::memory_order_relaxed); }
  // Tells all waits of this process whether its node has more ranks than processors.
  static void set_crowded(bool crowded) { hot_looks_ = crowded ? 0 : kHotLooks; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kHotLooks = 200;
  static constexpr std::chrono::milliseconds kYieldFor{5};
  static constexpr std::chrono::microseconds kSleep{50};

  static inline std::atomic<int> hot_looks_ = kHotLooks;

  int looks_ = 0;
  Clock::time_point begin_{};
};

}  // namespace syncline::comm
