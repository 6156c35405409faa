#include "runtime/training/shard_saves.h"

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
  try {
    folder_.save_shard(checkpoint, {rank_, count_});
  } catch (...) {
    set_state(kFailed);
    throw;
  }
  set_state(kWritten);
  if (rank_ != 0) return {};
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return all_ != kWriting; });
  if (all_ == kFailed)
    fail<IoError>("the checkpoint of step ", checkpoint.state.global_step,
                  " is given up: not every rank has written its shard");
  lock.unlock();
  return folder_.save_index(checkpoint, count_);
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
