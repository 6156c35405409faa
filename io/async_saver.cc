#include "io/async_saver.h"

#include <signal.h>

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/timeline.h"

namespace syncline::io {
namespace {

// Copies into the memory that `target` has, if it is the right amount.
void copy_array(Array& target, const Array& source) {
  if (target.dtype() != source.dtype() || target.shape() != source.shape())
    target = Array::uninitialized(source.dtype(), source.shape());
  if (source.bytes() > 0) std::memcpy(target.raw(), source.raw(), source.bytes());
}

void copy_weights(std::vector<Weight>& target, const std::vector<Weight>& source) {
  target.resize(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    target[i].name = source[i].name;
    copy_array(target[i].value, source[i].value);
  }
}

void copy_checkpoint(Checkpoint& target, const Checkpoint& source) {
  target.layers.resize(source.layers.size());
  for (std::size_t i = 0; i < source.layers.size(); ++i) {
    target.layers[i].name = source.layers[i].name;
    copy_weights(target.layers[i].weights, source.layers[i].weights);
  }
  copy_weights(target.optimizer, source.optimizer);
  target.state = source.state;
  target.model = source.model;
  target.metric = source.metric;
  target.has_state = source.has_state;
}

// A thread that starts while this lives takes no signals: they are for the threads that expect them.
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t all;
    sigfillset(&all);
    const int error = pthread_sigmask(SIG_SETMASK, &all, &before_);
    if (error != 0) fail<IoError>("AsyncSaver: cannot block signals: ", std::strerror(error));
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

AsyncSaver::AsyncSaver(Write write) : write_(std::move(write)) {
  const BlockSignals block;
  thread_ = std::thread([this] { run(); });
}

AsyncSaver::~AsyncSaver() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void AsyncSaver::wait_for_writer() {
  std::unique_lock lock(mutex_);
  if (!busy_) return;
  const timeline::Span traced("file", "wait for the save before");
  changed_.wait(lock, [this] { return !busy_; });
}

void AsyncSaver::save(const Checkpoint& checkpoint) {
  wait_for_writer();
  {
    const timeline::Span traced("file", "copy a checkpoint");
    copy_checkpoint(copy_, checkpoint);
  }
  const std::exception_ptr before = std::exchange(error_, nullptr);
  {
    const std::lock_guard lock(mutex_);
    busy_ = true;
  }
  changed_.notify_all();
  if (before) std::rethrow_exception(before);
}

void AsyncSaver::wait() {
  wait_for_writer();
  if (const std::exception_ptr error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
}

void AsyncSaver::run() {
  timeline::own_row = timeline::Row::kDisk;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return busy_ || ending_; });
    if (!busy_) return;
    lock.unlock();
    std::exception_ptr error;
    try {
      write_(copy_);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error;
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace syncline::io
