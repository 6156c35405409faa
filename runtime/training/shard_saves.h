// ShardSaves: saves of a training in several files, one written by each of the first ranks
// (syncline/checkpoint/shards.h).
//
// Each rank's writing thread (io/checkpoint/async_saver.h) writes its shard while the training goes on. Rank 0's then
// waits for the news that all shards are written and puts the index in place. The ranks tell each other by a number
// that rides beside each step's reductions (syncline/training/job.h): state() goes out, the greatest of all comes back
// by tell().
//
// write() is for the writing thread, all else for the one that trains. The folder outlives it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "syncline/checkpoint/folder.h"

namespace syncline::training {

class ShardSaves {
 public:
  // The greatest of all ranks' tells how all are.
  enum State : std::int32_t { kWritten = 0, kNoRoom = 1, kFailed = 2, kWriting = 3 };

  // Shard `rank` of `count`; ranks from `count` on write nothing.
  ShardSaves(const io::CheckpointFolder& folder, int rank, int count) : folder_(folder), rank_(rank), count_(count) {}

  bool writes() const { return rank_ < count_; }
  // Whether a save is on its way, for all anybody has told: the same on every rank.
  bool pending() const { return pending_; }

  // A save begins, on every rank after the same step, when rank 0's writing thread has ended the one before; where
  // writes(), the writing thread gets it next, or cannot_write() says that it will not.
  void begin();
  void cannot_write();
  // This rank's shard and, on rank 0, in the end the index, whose path is returned; "" elsewhere. Throws IoError, also
  // for the shards of others and after give_up(). If a rank's disk is full, the save is given up, and rank 0 removes
  // the oldest checkpoint: the next save finds room.
  std::string write(const io::Checkpoint& checkpoint);

  // Whether there is no index although all shards were written: not all ranks see the same folder, say. On rank 0.
  // Known when rank 0's writing thread has ended.
  bool lost_index();
  // Removes this rank's shard of a save that has no index.
  void discard() noexcept;

  State state();
  // Whether that is what became of the last save: the same on every rank.
  bool lacked_room();
  // How all ranks are. Nothing is pending once nobody writes.
  void tell(State all);
  // Waits until this rank writes no more.
  State wait();
  // The other ranks are gone: nobody will tell.
  void give_up();

 private:
  void set_state(State state);
  std::string write_index(const io::Checkpoint& checkpoint);
  // What rank 0 hears when nobody writes any more.
  State wait_for_all();

  const io::CheckpointFolder& folder_;
  const int rank_, count_;
  bool pending_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  State own_ = kWritten;
  State all_ = kWritten;  // as told
  bool lost_index_ = false;
  std::string own_file_;
};

}  // namespace syncline::training
