// The status file of a job: `status.json` in its checkpoint folder. Scripts read from it how the job ended and whether
// to requeue it. docs/jobs.md lists the fields.
//
// Rank 0 writes the file, or, when ranks end, one that still runs. Each write replaces the whole file; on a full disk
// it overwrites the text in place.
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
void write_status(const std::string& folder, const Status& status);

// The state, exit code and reason of the status file; empty if it is missing or damaged.
std::optional<Status> read_status(const std::string& folder);

}  // namespace syncline::training
