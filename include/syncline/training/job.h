// Job: makes a training survive failures. It handles checkpoints in a folder, signals, the death of a rank, and a
// status file.
//
//     Signals signals;                                             // first of all
//     ...
//     Job job({.folder = "run", .model = model, .communicator = communicator.get(), .requests = &signals});
//     Fit fit({..., .callbacks = {&bar, &stopping, &job}});  // the last, so that it saves what the others decided
//     return fit.run() == Ended::kPaused ? kExitSaved : 0;
//
// - It saves after each epoch, every `save_every` steps, and at the end. Rank 0 writes in the background, or each of
//   the first `shards` ranks writes its shard. A failed save prints one line on standard error and the training
//   continues; a failure of the last save fails the training.
// - All ranks handle a signal to one rank after the same step: a word that travels with each step's reductions carries
//   the request to every rank. Asked to stop, the ranks save, wait for the write, and Fit::run returns kPaused.
// - If a rank has died or the wire has failed, the lowest living rank saves the last finished step.
// - `status.json` in the folder reports the training's progress (runtime/training/status.h).
//
// Ownership: communicator and requests outlive the job. Threads: it is a callback. Throws IoError, on every rank, if
// the folder cannot be made or the last checkpoint cannot be written.
#pragma once

#include <memory>
#include <string>

#include "syncline/checkpoint/folder.h"
#include "syncline/distributed/communicator.h"
#include "syncline/training/callback.h"
#include "syncline/training/callbacks/monitor.h"
#include "syncline/training/signals.h"
#include "syncline/training/snapshot.h"

#pragma GCC visibility push(default)
namespace syncline::training {

struct JobOptions {
  std::string folder;  // made if missing; its parents must exist
  io::FolderOptions keep{};
  std::int64_t save_every = 0;  // interval in steps, beside the save after each epoch; 0: none
  std::string monitor{};        // the log that ranks checkpoints, "val_loss"; "": none is the best
  Mode mode = Mode::kAuto;      // of the monitor; keep.higher_is_better means kMax
  int shards = 1;               // files of a checkpoint, each written by one rank; 1: rank 0 writes one file
  SavedModel model;
  comm::Communicator* communicator = nullptr;  // null: one process
  Requests* requests = nullptr;                // of this rank; null: no requests
};

class Job : public Callback {
 public:
  // Throws ValueError for options out of range.
  explicit Job(JobOptions options);
  ~Job() override;

  // The plan's fingerprint and everything else that determines bits. A resumed training warns if it computes something
  // else or runs on another number of ranks or another processor.
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
  class Saves;
  std::unique_ptr<Saves> saves_;
};

}  // namespace syncline::training
#pragma GCC visibility pop
