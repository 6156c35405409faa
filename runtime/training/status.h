// The status file of a job: `status.json` in its checkpoint folder. Scripts read from it how the job ended and whether
// to requeue it. docs/jobs.md lists the fields.
//
// Rank 0 writes the file, or, when ranks end, one that still runs or the one with the error. Each write replaces the
// whole file; on a full disk it overwrites the text in place. Writers of a node exclude each other by flock on the
// folder; those of other nodes too, where the file system has such locks.
#pragma once

#include <optional>
#include <string>

#include "syncline/checkpoint/checkpoint.h"

namespace syncline::training {

struct Status {
  std::string state;             // running, saved, finished, failed
  std::optional<int> exit_code;  // of the program; empty while it runs, or if the launcher decides
  io::TrainingState counts;      // position of the training
  std::string checkpoint;        // path of the newest; "": none
  int ranks = 1;
  std::string reason;  // one line; "": none
};

// Throws IoError; a failed replacement keeps the old file.
void begin_status(const std::string& folder, const Status& status);

// The same, but a status "failed" keeps its state, exit code and reason: those of the first rank that failed since the
// training began. Rank 0 may still write that it runs, or that it misses a rank.
void write_status(const std::string& folder, Status status);

// Whether there is a status; a node may not see the folder.
bool has_status(const std::string& folder);

}  // namespace syncline::training
