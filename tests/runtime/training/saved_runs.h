// Trainings of a SmallFit under a Job, with an EarlyStopping, a table of the epochs, and shards.
#pragma once

#include <cstdint>
#include <string>

#include "syncline/training/callbacks/monitor.h"

namespace syncline::training {

inline constexpr std::int64_t kStopAfter = 9;  // the third step of the second epoch

struct Way {
  int ranks = 1;
  std::int64_t epochs = 3;
  bool stop = false;  // requests a stop after kStopAfter steps
  bool kill = false;  // there rank 0 throws Death, in the place of a killed process
  bool resume = false;
  int shards = 1;
  std::int64_t patience = 7;
  Mode mode = Mode::kAuto;  // kMax: a falling loss is no improvement
};

struct Trained {
  std::uint64_t begun = 0, ended = 0;  // digests of the variables
  std::int64_t begun_step = 0;
  std::string csv;  // the table
};

// Trains in `folder`, which it makes, with the table "epochs.csv" there. Returns rank 0's result.
Trained train(const Way& way, const std::string& folder);

}  // namespace syncline::training
