#include "runtime/training/shard_saves.h"

#include <unistd.h>

#include <exception>
#include <filesystem>

#include "io/files/atomic_file.h"
#include "syncline/checkpoint/shards.h"
#include "syncline/error.h"

namespace syncline::training {

void ShardSaves::begin() {
  const std::lock_guard lock(mutex_);
  pending_ = true;
  lost_index_ = false;
  all_ = kWriting;
  own_ = own_shard() ? kWriting : kWritten;
}

void ShardSaves::set_state(State state) {
  const std::lock_guard lock(mutex_);
  own_ = state;
  changed_.notify_all();
}

std::string ShardSaves::write(const io::Checkpoint& checkpoint) {
  std::exception_ptr error;
  State own = kWritten;
  try {
    const std::string file = folder_.save_shard(checkpoint, {rank_, count_});
    const std::lock_guard lock(mutex_);
    own_file_ = file;
  } catch (const io::DiskFullError&) {
    error = std::current_exception();
    own = kNoRoom;
  } catch (...) {
    error = std::current_exception();
    own = kFailed;
  }
  set_state(own);
  if (rank_ != 0 && error) std::rethrow_exception(error);
  if (rank_ != 0) return {};
  const State all = wait_for_all();
  if (all == kWritten) return write_index(checkpoint);
  folder_.discard_shards();  // all ranks have ended, and no index will list the shards
  const bool room = all == kNoRoom && folder_.make_room();
  if (error && !room) std::rethrow_exception(error);
  fail<IoError>("the checkpoint of step ", checkpoint.state.global_step,
                " is discarded: not every rank has written its shard",
                room ? "; a disk is full, and the oldest checkpoint was removed to make room for the next one" : "");
}

std::string ShardSaves::write_index(const io::Checkpoint& checkpoint) {
  try {
    return folder_.save_index(checkpoint, count_);
  } catch (...) {  // may follow the index: then the checkpoint is complete
    const std::lock_guard lock(mutex_);
    const std::filesystem::path shard = own_file_;
    std::error_code unknown;
    lost_index_ =
        std::filesystem::status(shard.parent_path() / io::index_of_shard(shard.filename().string()), unknown).type() ==
        std::filesystem::file_type::not_found;
    throw;
  }
}

bool ShardSaves::lost_index() {
  const std::lock_guard lock(mutex_);
  return lost_index_;
}

void ShardSaves::discard() noexcept {
  const std::lock_guard lock(mutex_);
  if (!own_file_.empty()) ::unlink(own_file_.c_str());
  own_file_.clear();
}

ShardSaves::State ShardSaves::wait_for_all() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return all_ != kWriting; });
  return all_;
}

bool ShardSaves::lacked_room() {
  const std::lock_guard lock(mutex_);
  return all_ == kNoRoom;
}

ShardSaves::State ShardSaves::state() {
  const std::lock_guard lock(mutex_);
  return own_;
}

void ShardSaves::set_state_of_all(State all) {
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

void ShardSaves::give_up() { set_state_of_all(kFailed); }

}  // namespace syncline::training
