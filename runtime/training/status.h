// The status file of a job: `status.json` in the folder of its checkpoints, for scripts that must know how it ended and
// whether to send it back to the queue. docs/jobs.md has its fields.
//
// One rank writes it; always a whole file is replaced by a whole one.
#pragma once

#include <optional>
#include <string>

#include "syncline/checkpoint/checkpoint.h"

namespace syncline::training {

struct Status {
  std::string state;             // running, saved, finished, failed
  std::optional<int> exit_code;  // that the program leaves with; nothing while it runs, or if the launcher decides
  io::TrainingState counts;      // where the training stands
  std::string checkpoint;        // the newest, as a path; "" for none
  int ranks = 1;
  std::string reason;  // one line; "" for none
};

// Throws IoError; the old file is whole then.
void write_status(const std::string& folder, const Status& status);

}  // namespace syncline::training
