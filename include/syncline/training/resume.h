// Resuming: rank 0 reads the checkpoint and sends it to the others, which need not see its disk.
//
//     const auto found = find_checkpoint("run", wire);   // before the graph is built: the seed is the checkpoint's
//     ...                                                // the graph, the Fit
//     if (found) found->resume(model, fit);
//
// All ranks call both. What goes wrong on rank 0 is thrown on every rank, with the same text.
#pragma once

#include <memory>
#include <string>

#include "syncline/checkpoint/checkpoint.h"
#include "syncline/distributed/communicator.h"
#include "syncline/training/snapshot.h"

namespace syncline::training {

class FoundCheckpoint {
 public:
  FoundCheckpoint(std::string path, io::Checkpoint checkpoint, comm::Communicator* wire);

  // Of the file.
  const std::string& path() const { return path_; }
  const io::TrainingState& state() const { return checkpoint_.state; }

  // Sets variables, counters and callbacks to where the checkpoint stands. On as many ranks as before, the training
  // goes on with the bits of the unbroken one. Once. Throws IoError if it is of another model or training.
  void resume(const SavedModel& model, Fit& fit);

 private:
  std::string path_;
  io::Checkpoint checkpoint_;  // without values on ranks other than the first
  comm::Communicator* wire_;
};

// The newest whole checkpoint of a folder (syncline/checkpoint/folder.h), or the file if `path` is one; nothing if
// there is none yet. The session's seed becomes that of the checkpoint. A damaged newest one is passed over, with a
// warning on standard error. Throws IoError if there are checkpoints but none can be read. `wire` is null for one
// process, and outlives what is returned.
std::unique_ptr<FoundCheckpoint> find_checkpoint(const std::string& path, comm::Communicator* wire);

}  // namespace syncline::training
