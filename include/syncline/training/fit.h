// Fit: the training loop. It calls a function once for each batch of each epoch, evaluates after each epoch, and calls
// its callbacks.
//
//     Fit fit({.step = &step, .names = {"loss", "accuracy"}, .batches = batches, .epochs = 3, .callbacks = {&bar}});
//     fit.run();
//
// FitState holds its progress. It can be saved after any step and set before the next one; the training then continues
// exactly like an uninterrupted one. Under several ranks each rank makes the same Fit and runs it.
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

#pragma GCC visibility push(default)
namespace syncline::training {

// The source of batches.
struct Batches {
  std::int64_t samples = 0;  // rows of an epoch, over all ranks
  std::int64_t batch = 0;    // rows of a batch, over all ranks; an epoch's last batch may have fewer
  // Returns the feeds of the step function for a step of an epoch, both counted from 0. It must return the same rows
  // whenever it is asked, because a resumed training repeats the uninterrupted one. Steps are asked in order, from any
  // first step.
  std::function<std::vector<Array>(std::int64_t epoch, std::int64_t step)> read;

  std::int64_t steps() const { return samples / batch + (samples % batch > 0 ? 1 : 0); }
  std::int64_t rows(std::int64_t step) const;
};

// The means of a function's scalar outputs over all rows, weighted by the batches' rows.
Logs evaluate(Function& function, const std::vector<std::string>& names, const Batches& batches);

struct FitOptions {
  Function* step = nullptr;                // one step of the training; its outputs are scalars
  std::vector<std::string> names{"loss"};  // names of the outputs
  Batches batches{};
  std::int64_t epochs = 1;
  std::int64_t max_steps = 0;          // of the whole training, including those before a checkpoint; 0: no limit
  std::function<Logs()> evaluate{};    // called after each epoch; may be empty
  std::vector<Callback*> callbacks{};  // called in this order
};

// The progress of a training, between two steps.
struct FitState {
  io::TrainingState counts;
  std::vector<double> sums;  // sums of outputs over the epoch's rows, in the order of the names; empty: none yet
  // Runs of the session's random operations. Empty in files of earlier versions: each operation then has run in
  // counts.random_step steps.
  Session::RandomRuns random_runs = {};
};

enum class Ended : std::uint8_t {
  kFinished,  // all epochs are done, or a callback stopped the training
  kPaused,    // a later run resumes the training
};

class Fit {
 public:
  // Throws ValueError for invalid options.
  explicit Fit(FitOptions options);

  const FitOptions& options() const { return options_; }
  const io::TrainingState& counts() const { return state_.counts; }
  // Collects the session's random run counts; for saving, too slow for every step.
  FitState state() const;
  // Sets the progress and the session's random counters. Throws ValueError if `state` does not fit the batches and
  // names.
  void set_state(FitState state);
  std::int64_t steps_of_epoch() const { return options_.batches.steps(); }
  // Rows of the last finished step.
  std::int64_t rows() const { return rows_; }
  // The means over the epoch's rows so far, including those before a resume.
  Logs averages() const;

  // Trains to the end, or until stop() or pause(). If a step or a callback throws a std::exception, every callback's
  // on_failure runs and the exception is rethrown; the state is then that after the last finished step.
  Ended run();

  // For callbacks: run no further step. An epoch whose last step is done is still evaluated and ended.
  void stop() { stopping_ = true; }
  // As stop(), but without that evaluation: the resumed training does it.
  void pause() { stopping_ = paused_ = true; }
  bool paused() const { return paused_; }

 private:
  void train();
  void run_step();
  void end_epoch();
  std::int64_t rows_so_far() const;
  bool at_limit() const { return options_.max_steps > 0 && state_.counts.global_step >= options_.max_steps; }

  FitOptions options_;
  FitState state_;                                      // without random_runs
  std::optional<Session::RandomRuns> before_evaluate_;  // runs before a running or failed evaluation
  Logs logs_;                                           // logs of the last step
  std::int64_t rows_ = 0;
  std::uint64_t feeds_read_ = 0;  // ranks compare their feeds at reads 1, 2, 4, ... of this run
  bool stopping_ = false, paused_ = false;
};

}  // namespace syncline::training
#pragma GCC visibility pop
