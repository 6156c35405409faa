// Callback: what looks on while a training runs (syncline/training/fit.h), and may change or end it: a progress bar, a
// history, early stopping, a learning-rate schedule, checkpoints.
//
// On several ranks every rank has the same callbacks in the same order, and each is called on each rank. What it
// decides must follow from what it is given, which is the same bits on every rank (not from clocks, files or the rank):
// then all ranks decide alike without a word. Only what is written for people belongs to rank 0 alone.
//
// Calls come from the thread that trains. What a callback throws ends the training.
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace syncline::training {

class Fit;

// Numbers by name, "loss", "accuracy", "val_loss", in the order in which they were first set.
class Logs {
 public:
  using Item = std::pair<std::string, double>;

  Logs() = default;
  Logs(std::initializer_list<Item> items) : items_(items) {}
  void set(std::string_view name, double value);
  std::optional<double> find(std::string_view name) const;
  // For who depends on it. Throws ValueError, with the names that there are, if it is missing; `caller` begins it.
  double monitored(std::string_view caller, std::string_view name) const;
  bool empty() const { return items_.empty(); }
  std::vector<Item>::const_iterator begin() const { return items_.begin(); }
  std::vector<Item>::const_iterator end() const { return items_.end(); }

 private:
  std::vector<Item> items_;
};

class Callback {
 public:
  virtual ~Callback() = default;

  // What a resumed training must know of this callback (how long to wait still, the best value so far), as text of the
  // callback's own. Checkpoints hold it under the name, which is unique among the callbacks of a training; without a
  // name there is nothing to hold. set_state comes before on_train_begin; it throws ValueError for a text that is none
  // of its own. A callback that has ended the training says so here, and ends it again in on_train_begin.
  virtual std::string name() const { return {}; }
  virtual std::string state() const { return {}; }
  virtual void set_state(const std::string& /*state*/) {}

  virtual void on_train_begin(Fit&) {}
  // Also when a resumed training enters in the middle: state().step tells. Epochs count from 0.
  virtual void on_epoch_begin(Fit&, std::int64_t /*epoch*/) {}
  virtual void on_step_begin(Fit&) {}
  // The step's own values; Fit::averages has the means over the epoch so far. The step counts as finished.
  virtual void on_step_end(Fit&, const Logs&) {}
  // The means over the epoch and, with "val_" before their names, those of the evaluation. What is set in the logs is
  // seen by the callbacks behind this one. The epoch counts as finished.
  virtual void on_epoch_end(Fit&, std::int64_t /*epoch*/, Logs&) {}
  // Not after a failure.
  virtual void on_train_end(Fit&) {}
  // Something was thrown, on this rank at least; it goes on to the caller of Fit::run.
  virtual void on_failure(Fit&, const std::exception&) noexcept {}
};

}  // namespace syncline::training
