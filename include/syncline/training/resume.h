// Resuming: rank 0 reads the checkpoint and sends it to the other ranks, which need no access to its disk.
//
//     const auto found = find_checkpoint("run", communicator);  // before the graph is built: sets the session's seed
//     ...                                                       // the graph, the Fit
//     if (found) found->resume(model, fit);
//
// Both calls are collective. An error on rank 0 is thrown on every rank, with the same text.
#pragma once

#include <memory>
#include <string>

#include "syncline/checkpoint/checkpoint.h"
#include "syncline/distributed/communicator.h"
#include "syncline/training/snapshot.h"

#pragma GCC visibility push(default)
namespace syncline::training {

class FoundCheckpoint {
 public:
  FoundCheckpoint(std::string path, io::Checkpoint checkpoint, comm::Communicator* communicator);

  // The checkpoint's file.
  const std::string& path() const { return path_; }
  const io::TrainingState& state() const { return checkpoint_.state; }

  // Restores variables, counters and callbacks. On as many ranks as before, on processors of the same kind, the
  // training continues with the bits of the uninterrupted one. Call it once. Throws IoError if the checkpoint is of
  // another model or training.
  void resume(const SavedModel& model, Fit& fit);

 private:
  std::string path_;
  io::Checkpoint checkpoint_;  // without values on ranks other than 0
  comm::Communicator* communicator_;
};

// The newest whole checkpoint of a folder (syncline/checkpoint/folder.h), or the file if `path` is a file; null if
// there is none yet. Sets the session's seed to the checkpoint's. Skips a damaged newest one with a warning on standard
// error. Throws IoError if there are checkpoints but none is readable. `communicator` is null for one process, and
// outlives the result.
std::unique_ptr<FoundCheckpoint> find_checkpoint(const std::string& path, comm::Communicator* communicator);

}  // namespace syncline::training
#pragma GCC visibility pop
