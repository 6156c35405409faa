// StallWatch: a limit and a report for calls of the system below that wait for other ranks and cannot be called off:
// the start of a job and its end. While one lives, a thread says on stderr, once in every stall limit, for what it
// waits; at the wait limit it says so and ends the process, and with it the job. Not as long as those ranks may come: a
// rank that has come to its end in good order is not stalled while the others go on.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "comm/worker/worker.h"

namespace syncline::comm {

class StallWatch {
 public:
  // `what`: "rank 1 of 4, at its end, for ...", and whether what is waited for may come; called by the thread. `end`
  // gets the exit code, kExitStall, and does not return.
  StallWatch(const WorkerOptions& limits, std::function<Missing()> what, std::function<void(int)> end);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

 private:
  void run();

  const WorkerOptions limits_;
  const std::function<Missing()> what_;
  const std::function<void(int)> end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace syncline::comm
