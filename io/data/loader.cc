#include "syncline/data/loader.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/block_signals.h"
#include "io/data/batch_reader.h"
#include "syncline/error.h"
#include "syncline/timeline.h"

namespace syncline::io {

class Loader::Impl {
 public:
  Impl(std::unique_ptr<Source> source, const LoaderOptions& options);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const BatchReader& reader() const { return reader_; }
  Batch batch(std::int64_t epoch, std::int64_t step);

 private:
  struct Made {
    Batch batch;
    std::exception_ptr error;
  };
  std::int64_t steps() const { return reader_.steps(); }
  void run();
  Made make(std::int64_t number);

  BatchReader reader_;  // used by the thread only, once it runs
  const std::int64_t prefetch_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Batches are numbered across epochs. made_ holds batches next_ to next_ + made_.size() - 1.
  std::int64_t next_ = 0;
  std::deque<Made> made_;
  std::uint64_t restarts_ = 0;  // a batch begun before the latest restart is dropped
  bool failed_ = false;         // the newest batch has failed, so no further batch is read
  bool wanted_ = false;         // batch() has been called
  bool ending_ = false;
  std::thread thread_;  // last: it uses the members above
};

Loader::Impl::Impl(std::unique_ptr<Source> source, const LoaderOptions& options)
    : reader_(std::move(source), options), prefetch_(options.prefetch) {
  if (prefetch_ == 0) return;
  const BlockSignals block;
  thread_ = std::thread([this] { run(); });
}

Loader::Impl::~Impl() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Batch Loader::Impl::batch(std::int64_t epoch, std::int64_t step) {
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

Loader::Impl::Made Loader::Impl::make(std::int64_t number) {
  try {
    return {reader_.read(number / steps(), number % steps()), nullptr};
  } catch (...) {
    return {{}, std::current_exception()};
  }
}

void Loader::Impl::run() {
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

Loader::Loader(std::unique_ptr<Source> source, const LoaderOptions& options)
    : impl_(std::make_unique<Impl>(std::move(source), options)) {}

Loader::~Loader() = default;

const std::vector<Column>& Loader::columns() const { return impl_->reader().columns(); }

std::int64_t Loader::rows() const { return impl_->reader().rows(); }

std::int64_t Loader::steps() const { return impl_->reader().steps(); }

Batch Loader::batch(std::int64_t epoch, std::int64_t step) { return impl_->batch(epoch, step); }

}  // namespace syncline::io
