// Job::Saves: the implementation of Job (syncline/training/job.h). It decides when to save, agrees on requests with the
// other ranks, and writes the status file.
//
// For the training thread, except write(), which runs on the saver's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "io/checkpoint/async_saver.h"
#include "io/files/folder_lock.h"
#include "runtime/training/shard_saves.h"
#include "runtime/training/status.h"
#include "syncline/training/job.h"

namespace syncline::training {

class Job::Saves {
 public:
  explicit Saves(JobOptions options);
  ~Saves();

  std::string state() const;
  void set_state(const std::string& state);

  void on_train_begin(Fit& fit);
  void on_step_begin(Fit& fit);
  void on_step_end(Fit& fit, const Logs& logs);
  void on_epoch_end(Fit& fit, std::int64_t epoch, Logs& logs);
  void on_train_end(Fit& fit);
  void on_failure(Fit& fit, const std::exception& error) noexcept;

 private:
  void begin(const Fit& fit);
  std::string setting() const;
  void compare_setting();
  Request agreed_request();
  void note_plan(const Fit& fit);
  void save(const Fit& fit);
  void begin_save(const Fit& fit);
  io::Checkpoint checkpoint_of(const Fit& fit, comm::Communicator* communicator,
                               const std::optional<io::Shard>& shard) const;
  void wait_for_writer();
  void end_save_of_shards();
  void wait_for_index();
  // What this rank writes of a checkpoint, if it does.
  std::optional<io::Shard> own_shard() const {
    return shards_ ? shards_->own_shard() : first_ ? std::optional(io::Shard{}) : std::nullopt;
  }
  void write(const io::Checkpoint& checkpoint);
  void end(const Fit& fit);
  void publish_status(const std::string& state, std::optional<int> exit_code, const io::TrainingState& counts,
                      const std::string& reason) const;
  Status status_of(const std::string& state, std::optional<int> exit_code, const io::TrainingState& counts,
                   const std::string& reason) const;
  void publish_own_error(const Fit& fit, const std::exception& error);
  void save_after_failure(const Fit& fit, const std::exception& error);
  bool save_before_is_whole(const Fit& fit);
  void save_now(const Fit& fit);
  std::optional<io::TrainingState> counts_of_file() const;

  JobOptions options_;
  std::optional<io::FolderLock> lock_;  // on rank 0
  io::CheckpointFolder folder_;
  const bool first_;          // this is rank 0
  bool begun_ = false;        // the status is that of this training
  bool last_failed_ = false;  // the last checkpoint could not be written
  bool no_memory_ = false;    // the last save had no memory for its copy
  std::uint64_t plan_ = 0, plan_before_ = 0;
  std::optional<std::string> setting_before_;  // of the resumed checkpoint; "": unknown
  std::unique_ptr<ShardSaves> shards_;         // null: one file
  std::optional<double> metric_;               // of the epoch that ended at metric_at_
  io::TrainingState metric_at_;
  std::optional<io::TrainingState> resumed_;  // where this training began; none: at the beginning
  std::optional<io::TrainingState> saved_;    // of the last save begun
  std::string file_;                          // the newest checkpoint; the saver's thread sets it
  struct Words {
    std::int32_t request, shards;
  };
  std::unique_ptr<Words> words_;           // operand of the all-reduce
  comm::Ticket ticket_ = 0;                // of that all-reduce; 0: none pending
  std::unique_ptr<io::AsyncSaver> saver_;  // on writing ranks; last: its thread uses the members above
};

}  // namespace syncline::training
