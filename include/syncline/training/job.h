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
#include <string>

#include "syncline/checkpoint/folder.h"
#include "syncline/distributed/communicator.h"
#include "syncline/training/callback.h"
#include "syncline/training/signals.h"
#include "syncline/training/snapshot.h"

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
  class Saves;
  std::unique_ptr<Saves> saves_;
};

}  // namespace syncline::training
