// Job: what makes a training survive: checkpoints in a folder, signals, the death of a rank, a status file.
//
//     Signals signals;                                             // first of all
//     ...
//     Job job({.folder = "run", .model = model, .wire = wire.get(), .requests = &signals});
//     Fit fit({..., .callbacks = {&bar, &stopping, &job}});  // the last, so that it saves what the others decided
//     return fit.run() == Ended::kPaused ? kExitSaved : 0;
//
// - It saves after each epoch, every so many steps, and at the end; rank 0 writes, or each of the first ranks its
//   shard, in the background. A save that fails is one line on standard error, and the training goes on; only if the
//   last one fails does the training fail.
// - What one rank is asked by a signal, all answer after the same step: a word that rides beside each step's reductions
//   takes the request to every rank. Asked to stop, they save, wait for the write, and Fit::run returns kPaused.
// - When a rank has died, or the wire failed, the lowest rank that still lives saves the last finished step.
// - `status.json` in the folder says how the training stands (runtime/training/status.h).
//
// Ownership: communicator and requests outlive the job. Threads: it is a callback. Throws IoError, on every rank, if
// the folder cannot be made or the last checkpoint not be written.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "io/async_saver.h"
#include "io/checkpoint_folder.h"
#include "io/folder_lock.h"
#include "runtime/training/callback.h"
#include "runtime/training/shard_saves.h"
#include "runtime/training/signals.h"
#include "runtime/training/snapshot.h"

namespace syncline::training {

struct JobOptions {
  std::string folder;  // made if it is missing, but not those above it
  io::FolderOptions keep{};
  std::int64_t save_every = 0;  // steps, beside the save after each epoch; 0: none
  std::string monitor{};        // the log that tells which checkpoint is the best, "val_loss"; "": none is
  int shards = 1;               // files of a checkpoint, each written by another rank; 1: rank 0 writes one file
  SavedModel model;
  comm::Communicator* wire = nullptr;  // null: one process
  Requests* requests = nullptr;        // of this rank; null: nobody asks
};

class Job : public Callback {
 public:
  // Throws ValueError for options out of range.
  explicit Job(JobOptions options);
  ~Job() override;

  // The plan's fingerprint, and what else decides bits: a resumed training that computes something else, or on another
  // layout of ranks or another processor, says so.
  std::string name() const override { return "job"; }
  std::string state() const override;
  void set_state(const std::string& state) override;

  void on_train_begin(Fit& fit) override;
  void on_step_begin(Fit& fit) override;
  void on_step_end(Fit& fit, const Logs& logs) override;
  void on_epoch_end(Fit& fit, std::int64_t epoch, Logs& logs) override;
  void on_train_end(Fit& fit) override;
  void on_failure(Fit& fit, const std::exception& error) noexcept override;

 private:
  void begin(const Fit& fit);
  std::string setting() const;
  void compare_setting();
  Request agreed_request();
  void note_plan(const Fit& fit);
  void save(const Fit& fit);
  void wait_for_writer();
  void settle();
  void wait_for_index();
  bool writes() const { return shards_ ? shards_->writes() : first_; }
  void write(const io::Checkpoint& checkpoint);
  void end(const Fit& fit);
  void tell(const std::string& state, std::optional<int> exit_code, const io::TrainingState& counts,
            const std::string& reason) const;
  void survive(const Fit& fit, const std::exception& error);
  bool save_before_is_whole(const Fit& fit);
  void save_now(const Fit& fit);
  io::TrainingState counts_of_file(const Fit& fit) const;

  JobOptions options_;
  std::optional<io::FolderLock> lock_;  // of rank 0
  io::CheckpointFolder folder_;
  const bool first_;          // this is rank 0
  bool begun_ = false;        // there is a folder
  bool last_failed_ = false;  // the checkpoint at the end could not be written
  bool no_memory_ = false;    // for the last save
  std::uint64_t plan_ = 0, plan_before_ = 0;
  std::optional<std::string> setting_before_;  // of the checkpoint that was resumed; "": not known
  std::unique_ptr<ShardSaves> shards_;         // if there are several
  std::optional<double> metric_;               // of the epoch that has just ended, until the next step
  std::optional<io::TrainingState> saved_;     // of the last save that was begun
  std::string file_;                           // the newest checkpoint; the saver's while it writes
  struct Words {
    std::int32_t request, shards;
  };
  std::unique_ptr<Words> words_;           // on their way through the wire
  comm::Ticket ticket_ = 0;                // 0: it is not
  std::unique_ptr<io::AsyncSaver> saver_;  // on ranks that write; the last, for its thread uses all the others
};

}  // namespace syncline::training
