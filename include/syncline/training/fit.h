// Fit: the loop of a training. It calls a function once for each batch of each epoch, evaluates after each epoch, and
// tells its callbacks.
//
//     Fit fit({.step = &step, .names = {"loss", "accuracy"}, .batches = batches, .epochs = 3, .callbacks = {&bar}});
//     fit.run();
//
// Where it stands is a value (FitState) that can be saved after any step and set before the next one: the training then
// goes on as the unbroken one would have. Under several ranks each rank makes the same Fit and runs it.
//
// Ownership: the functions and callbacks are the caller's and outlive the Fit. One thread uses it, the session's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "syncline/array.h"
#include "syncline/backend/function.h"
#include "syncline/checkpoint/checkpoint.h"
#include "syncline/session.h"
#include "syncline/training/callback.h"

namespace syncline::training {

// Where batches come from.
struct Batches {
  std::int64_t samples = 0;  // rows of an epoch, over all ranks
  std::int64_t batch = 0;    // rows of a batch, over all ranks; the last one of an epoch may have fewer
  // The feeds of the step function for a step of an epoch, both counted from 0: the same rows whenever it is asked, so
  // that a resumed training meets what the unbroken one would have met. Asked in order, from anywhere.
  std::function<std::vector<Array>(std::int64_t epoch, std::int64_t step)> read;

  std::int64_t steps() const { return samples / batch + (samples % batch > 0 ? 1 : 0); }
  std::int64_t rows(std::int64_t step) const;
};

// The means over all rows, weighted by the batches' rows, of a function's scalar outputs.
Logs evaluate(Function& function, const std::vector<std::string>& names, const Batches& batches);

struct FitOptions {
  Function* step = nullptr;                // one step of the training; its outputs are scalars
  std::vector<std::string> names{"loss"};  // of the outputs
  Batches batches{};
  std::int64_t epochs = 1;
  std::int64_t max_steps = 0;          // of the whole training, those before a checkpoint included; 0: no limit
  std::function<Logs()> evaluate{};    // after each epoch; may be empty
  std::vector<Callback*> callbacks{};  // called in this order
};

// Where a training stands, between two steps.
struct FitState {
  io::TrainingState counts;
  std::vector<double> sums;  // of the outputs over the rows of the epoch, in the order of the names; empty: none yet
  // Of the session's operations; empty in what earlier versions wrote: each has run in all of counts.random_step.
  Session::RandomRuns random_runs = {};
};

enum class Ended : std::uint8_t {
  kFinished,  // all epochs are done, or a callback had enough
  kPaused,    // it is to go on later
};

class Fit {
 public:
  // Throws ValueError for options that make no sense.
  explicit Fit(FitOptions options);

  const FitOptions& options() const { return options_; }
  const io::TrainingState& counts() const { return state_.counts; }
  // Puts the session's counters of random numbers together: for what saves it, not for every step.
  FitState state() const;
  // Goes to another place, which must be one of such batches; the session's counter of random numbers goes with it.
  // Throws ValueError if it is not.
  void set_state(FitState state);
  std::int64_t steps_of_epoch() const { return options_.batches.steps(); }
  // Rows of the step that was done last.
  std::int64_t rows() const { return rows_; }
  // The means over the rows of the epoch so far; in a resumed epoch those before are counted too.
  Logs averages() const;

  // Trains to the end, or until somebody stops it. What a step or a callback throws goes on to the caller, after every
  // callback has heard of it; the state is then that after the last finished step.
  Ended run();

  // For callbacks: no further step. An epoch whose last step was done is still evaluated and ended.
  void stop() { stopping_ = true; }
  // The same, but nothing more is done at all: the rest is for the training that resumes this one.
  void pause() { stopping_ = paused_ = true; }
  bool paused() const { return paused_; }

 private:
  void train();
  void run_step();
  void end_epoch();
  std::int64_t rows_so_far() const;
  bool at_limit() const { return options_.max_steps > 0 && state_.counts.global_step >= options_.max_steps; }

  FitOptions options_;
  FitState state_;                                      // but for random_runs
  std::optional<Session::RandomRuns> before_evaluate_;  // while that goes on, and if it has failed
  Logs logs_;                                           // of the last step
  std::int64_t rows_ = 0;
  std::uint64_t feeds_read_ = 0;  // ranks compare theirs at the first, second, fourth, ... of this run
  bool stopping_ = false, paused_ = false;
};

}  // namespace syncline::training
