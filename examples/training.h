// Training on labelled images, as a program of the C++ backend: one function for a training step, one for evaluation, a
// checkpoint of everything that the next step depends on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "examples/models.h"
#include "examples/options.h"
#include "io/checkpoint.h"
#include "io/dataset.h"
#include "runtime/function.h"
#include "runtime/optimizers.h"

namespace syncline::examples {

class Training {
 public:
  // Reads the data and, to resume, the checkpoint, whose seed becomes the session's. Throws IoError. Only this and
  // resume() may fail on some ranks and not on others: neither waits for another rank.
  Training(const Options& options, int rank);
  // Builds the graph. All ranks must call it.
  void build();
  // Goes to where the checkpoint stands, if one was read. Throws IoError if it does not fit.
  void resume();
  // Steps finished since the beginning, with those before the checkpoint.
  std::int64_t steps() const { return state_.global_step; }

  // Trains to the end (or max_steps), saving on the way. Throws IoError if a save fails and CommError from the wire.
  void run();

  struct Score {
    double loss, accuracy;
  };
  Score evaluate();
  // Of the bytes of all variables, in order.
  std::uint64_t digest() const;

 private:
  void read_checkpoint();
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
  std::optional<io::Checkpoint> found_;  // until resume()
  std::vector<std::int64_t> order_;      // of the rows in the epoch now running
};

}  // namespace syncline::examples
