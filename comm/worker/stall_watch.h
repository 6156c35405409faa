// StallWatch: reports and a limit for system calls that wait for other ranks and cannot be cancelled: at the start of a
// job and at its end. While the object lives, a thread prints on stderr, once per stall limit, what the process waits
// for. At the wait limit it ends the process, and with it the job. The limit counts from the last time at which the
// missing ranks could still come: a rank at its orderly end does not stall while the others run.
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
  // `what` returns what this rank waits for, as text, and whether the missing ranks may come; the watch's thread calls
  // it. `end` gets the exit code, kExitStall, and must not return.
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
