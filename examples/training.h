// Training on labelled images, as a program of the C++ backend: one function for a training step, one for evaluation, a
// checkpoint of everything that the next step depends on.
#pragma once

#include <cstdint>
#include <string>

#include "examples/models.h"
#include "examples/options.h"
#include "io/checkpoint.h"
#include "io/dataset.h"
#include "runtime/function.h"
#include "runtime/optimizers.h"

namespace syncline::examples {

class Training {
 public:
  // Reads the data and, to resume, the checkpoint; builds the graph. Throws IoError and ValueError.
  Training(const Options& options, int rank);

  // Trains to the end (or max_steps), saving on the way. Throws IoError if a save fails and CommError from the wire.
  void run();

  struct Score {
    double loss, accuracy;
  };
  Score evaluate();
  // Of the bytes of all variables, in order.
  std::uint64_t digest() const;

 private:
  void build();
  void resume();
  void train_epoch();
  void save();
  Array batch_of(const Array& rows, std::int64_t begin, std::int64_t end) const;
  io::Checkpoint checkpoint() const;
  bool stopped() const { return options_.max_steps > 0 && state_.global_step >= options_.max_steps; }
  std::int64_t steps_of_epoch() const;

  Options options_;
  int rank_;
  io::LabeledImages train_, test_;
  Model model_;
  Optimizer optimizer_;
  std::unique_ptr<Function> step_, score_;
  io::TrainingState state_;
  std::vector<std::int64_t> order_;  // of the rows in the epoch now running
};

}  // namespace syncline::examples
