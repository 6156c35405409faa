#include "io/checkpoint/async_saver.h"

#include <cstring>
#include <utility>

#include "base/alignment.h"
#include "base/block_signals.h"
#include "syncline/error.h"
#include "syncline/timeline.h"

namespace syncline::io {
namespace {

bool is_absent(const Array& array) { return array.raw() == nullptr; }  // another rank's (syncline/checkpoint/shards.h)

std::size_t room_for(const Array& array) { return is_absent(array) ? 0 : aligned(array.bytes()); }

void for_each_array(auto& checkpoint, auto action) {
  for (auto& layer : checkpoint.layers)
    for (auto& weight : layer.weights) action(weight.value);
  for (auto& weight : checkpoint.optimizer) action(weight.value);
}

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

bool AsyncSaver::make_room(const Checkpoint& checkpoint) {
  std::size_t bytes = 0;
  for_each_array(checkpoint, [&](const Array& array) { bytes += room_for(array); });
  if (memory_.bytes() >= bytes) return false;
  copy_ = {};
  memory_ = Array();  // free the old memory before allocating
  memory_ = Array::uninitialized(DType::kUint8, {static_cast<std::int64_t>(bytes)});
  return true;
}

// Copies all arrays into one block, which fits any shapes of the next checkpoint and gets large pages even for small
// arrays. An array shares the caller's bytes until it has its place.
void AsyncSaver::copy(const Checkpoint& checkpoint) {
  const timeline::Span traced("file", "copy a checkpoint");
  make_room(checkpoint);
  copy_ = checkpoint;
  std::byte* place = memory_.raw();
  for_each_array(copy_, [&](Array& array) {
    if (is_absent(array)) return;
    Array own = Array::borrow(array.dtype(), array.shape(), place);
    if (array.bytes() > 0) std::memcpy(place, array.raw(), array.bytes());
    place += room_for(array);
    array = std::move(own);
  });
}

void AsyncSaver::start(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
    busy_ = true;
  }
  changed_.notify_all();
}

void AsyncSaver::prepare(const Checkpoint& checkpoint) {
  wait_for_writer();
  if (make_room(checkpoint)) start([this] { std::memset(memory_.raw(), 0, memory_.bytes()); });
}

void AsyncSaver::save(const Checkpoint& checkpoint) {
  wait_for_writer();
  copy(checkpoint);
  const std::exception_ptr before = std::exchange(error_, nullptr);
  start([this] { write_(copy_); });
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
      work_();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error) error_ = error;
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace syncline::io
