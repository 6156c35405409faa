#include "comm/worker/stall_watch.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iomanip>
#include <utility>

#include "base/block_signals.h"
#include "syncline/distributed/exit_codes.h"
#include "syncline/error.h"

namespace syncline::comm {

StallWatch::StallWatch(const WorkerOptions& limits, std::function<Missing()> what, std::function<void(int)> end)
    : limits_(limits), what_(std::move(what)), end_(std::move(end)) {
  const BlockSignals block;
  thread_ = std::thread([this] { run(); });
}

StallWatch::~StallWatch() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void StallWatch::run() {
  using Seconds = std::chrono::duration<double>;
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  for (Seconds next{0}, could_come{0};;) {
    const Seconds later = next + limits_.stall_limit, limit = limits_.wait_limit;
    next = next < limit ? std::min(later, limit) : later;
    const auto until = begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(next);
    if (changed_.wait_until(lock, until, [&] { return over_; })) return;
    const Missing missing = what_();
    if (missing.may_come) could_come = next;
    const bool last = next - could_come >= limit;
    const std::string text = join_text(std::fixed, std::setprecision(1), next.count(), " s: ", missing.text,
                                       last ? ". wait_limit (SYNCLINE_WAIT_LIMIT) is reached" : "");
    std::fprintf(stderr, "syncline: waited %s\n", text.c_str());
    if (last) end_(kExitStall);
  }
}

}  // namespace syncline::comm
