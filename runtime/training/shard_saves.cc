#include "runtime/training/shard_saves.h"

#include <exception>

#include "base/error.h"

namespace syncline::training {

void ShardSaves::begin() {
  const std::lock_guard lock(mutex_);
  pending_ = true;
  all_ = kWriting;
  own_ = writes() ? kWriting : kWritten;
}

void ShardSaves::set_state(State state) {
  const std::lock_guard lock(mutex_);
  own_ = state;
  changed_.notify_all();
}

std::string ShardSaves::write(const io::Checkpoint& checkpoint) {
  std::exception_ptr error;
  try {
    folder_.save_shard(checkpoint, {rank_, count_});
  } catch (...) {
    error = std::current_exception();
  }
  set_state(error ? kFailed : kWritten);
  if (rank_ != 0 && error) std::rethrow_exception(error);
  if (rank_ != 0) return {};
  if (all_written()) return folder_.save_index(checkpoint, count_);
  folder_.discard_shards();  // nobody writes any more, and what is written has no index to come
  if (error) std::rethrow_exception(error);
  fail<IoError>("the checkpoint of step ", checkpoint.state.global_step,
                " is given up: not every rank has written its shard");
}

bool ShardSaves::all_written() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return all_ != kWriting; });
  return all_ == kWritten;
}

ShardSaves::State ShardSaves::state() {
  const std::lock_guard lock(mutex_);
  return own_;
}

void ShardSaves::tell(State all) {
  if (!pending_ || all == kWriting) return;
  pending_ = false;
  const std::lock_guard lock(mutex_);
  all_ = all;
  changed_.notify_all();
}

ShardSaves::State ShardSaves::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return own_ != kWriting; });
  return own_;
}

void ShardSaves::cannot_write() { set_state(kFailed); }

void ShardSaves::give_up() { tell(kFailed); }

}  // namespace syncline::training
