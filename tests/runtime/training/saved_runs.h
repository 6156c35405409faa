// Trainings of a SmallFit with everything that a checkpoint remembers: an EarlyStopping, a table of the epochs, shards.
#pragma once

#include <cstdint>
#include <string>

#include "syncline/training/callbacks/monitor.h"

namespace syncline::training {

inline constexpr std::int64_t kStopAfter = 9;  // the third step of the second epoch

struct Way {
  int ranks = 1;
  std::int64_t epochs = 3;
  bool stop = false;  // asked to stop after kStopAfter steps
  bool kill = false;  // rank 0 leaves there without a word, as a process does that is killed: throws Death
  bool resume = false;
  int shards = 1;
  std::int64_t patience = 7;
  Mode mode = Mode::kAuto;  // kMax: the loss, which falls, gets no better
};

struct Trained {
  std::uint64_t begun = 0, ended = 0;  // digests of the variables
  std::int64_t begun_step = 0;
  std::string csv;  // the table
};

// In `folder`, which is made, beside "epochs.csv". What rank 0 saw.
Trained train(const Way& way, const std::string& folder);

}  // namespace syncline::training
