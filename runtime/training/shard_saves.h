// ShardSaves: saves a checkpoint as several files, one written by each of the first `count` ranks
// (syncline/checkpoint/shards.h).
//
// The writing thread of each rank (io/checkpoint/async_saver.h) writes its shard while training continues. Rank 0's
// writing thread then waits until all shards are written, and writes the index. The ranks exchange their states in an
// all-reduce (max) beside the reductions of each step (syncline/training/job.h): state() is the operand,
// set_state_of_all() takes the result.
//
// write() is for the writing thread, all other functions for the training thread. The folder must outlive this object.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "syncline/checkpoint/folder.h"

namespace syncline::training {

class ShardSaves {
 public:
  // The maximum over the ranks is the state of the save.
  enum State : std::int32_t { kWritten = 0, kNoRoom = 1, kFailed = 2, kWriting = 3 };

  // Shard `rank` of `count`; ranks from `count` on write nothing.
  ShardSaves(const io::CheckpointFolder& folder, int rank, int count) : folder_(folder), rank_(rank), count_(count) {}

  // What this rank writes, if it does.
  std::optional<io::Shard> own_shard() const {
    return rank_ < count_ ? std::optional(io::Shard{rank_, count_}) : std::nullopt;
  }
  // Between begin() and the set_state_of_all() that ends the save; equal on all ranks.
  bool pending() const { return pending_; }

  // Begins a save, on all ranks after the same step. Rank 0's writing thread must have ended the previous save. Where
  // own_shard(), the caller then starts write() on the writing thread, or calls cannot_write().
  void begin();
  void cannot_write();
  // Writes this rank's shard. Rank 0 then writes the index and returns its path; other ranks return "". Throws IoError;
  // rank 0 also if another rank failed, and after give_up(). If a rank's disk is full, the save is given up and rank 0
  // removes the oldest checkpoint, which makes room for the next save.
  std::string write(const io::Checkpoint& checkpoint);

  // Whether the index is missing although all shards were written, for example because the ranks see different
  // folders. Valid on rank 0, once its writing thread has ended the save.
  bool lost_index();
  // Removes this rank's shard of a save without an index.
  void discard() noexcept;

  // This rank's state.
  State state();
  // Whether the last save ended with kNoRoom; equal on all ranks.
  bool lacked_room();
  // Takes the maximum of all ranks' states. Any value but kWriting ends the pending save.
  void set_state_of_all(State all);
  // Waits until this rank has ended its write; returns state().
  State wait();
  // Ends the pending save as failed, because the other ranks are gone.
  void give_up();

 private:
  void set_state(State state);
  std::string write_index(const io::Checkpoint& checkpoint);
  // On rank 0: waits for the state that ends the save.
  State wait_for_all();

  const io::CheckpointFolder& folder_;
  const int rank_, count_;
  bool pending_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  State own_ = kWritten;
  State all_ = kWritten;  // from set_state_of_all()
  bool lost_index_ = false;
  std::string own_file_;
};

}  // namespace syncline::training
