#include "io/data/loader.h"

#include <utility>

#include "base/error.h"
#include "base/timeline.h"
#include "io/block_signals.h"

namespace syncline::io {

Loader::Loader(std::unique_ptr<Source> source, const LoaderOptions& options)
    : reader_(std::move(source), options), prefetch_(options.prefetch) {
  if (prefetch_ == 0) return;
  const BlockSignals block;
  thread_ = std::thread([this] { run(); });
}

Loader::~Loader() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Batch Loader::batch(std::int64_t epoch, std::int64_t step) {
  if (prefetch_ == 0) return reader_.read(epoch, step);
  if (epoch < 0 || step < 0 || step >= steps())
    fail<ValueError>("loader: step ", step, " of epoch ", epoch, "; an epoch has ", steps(), " steps");
  const std::int64_t number = epoch * steps() + step;
  std::unique_lock lock(mutex_);
  if (!wanted_ || number != next_ || (made_.empty() && failed_)) {
    made_.clear();
    next_ = number;
    failed_ = false;
    wanted_ = true;
    ++restarts_;
    changed_.notify_all();
  }
  if (made_.empty()) {
    const timeline::Span traced("file", "wait for a batch");
    changed_.wait(lock, [this] { return !made_.empty(); });
  }
  Made made = std::move(made_.front());
  made_.pop_front();
  if (made.error) std::rethrow_exception(made.error);
  ++next_;
  lock.unlock();
  changed_.notify_all();
  return std::move(made.batch);
}

Loader::Made Loader::make(std::int64_t number) {
  try {
    return {reader_.read(number / steps(), number % steps()), nullptr};
  } catch (...) {
    return {{}, std::current_exception()};
  }
}

void Loader::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] {
      return ending_ || (wanted_ && !failed_ && static_cast<std::int64_t>(made_.size()) < prefetch_);
    });
    if (ending_) return;
    const std::int64_t number = next_ + static_cast<std::int64_t>(made_.size());
    const std::uint64_t begun = restarts_;
    lock.unlock();
    Made made = make(number);
    lock.lock();
    if (begun != restarts_) continue;
    failed_ = made.error != nullptr;
    made_.push_back(std::move(made));
    changed_.notify_all();
  }
}

}  // namespace syncline::io
