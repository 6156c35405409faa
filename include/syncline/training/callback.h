// Callback: observes a training (syncline/training/fit.h), and may change or end it. Examples: a progress bar, a
// history, early stopping, a learning-rate schedule, checkpoints.
//
// Under several ranks every rank has the same callbacks in the same order and calls each one. A callback's decisions
// must depend only on its arguments, which are bitwise equal on every rank, and not on clocks, files or the rank: then
// all ranks decide alike without communication. Only rank 0 writes output for people.
//
// The training thread calls the callbacks. An exception of a callback ends the training.
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace syncline::training {

class Fit;

// Numbers by name, "loss", "accuracy", "val_loss", in the order of their first set().
class Logs {
 public:
  using Item = std::pair<std::string, double>;

  Logs() = default;
  Logs(std::initializer_list<Item> items) : items_(items) {}
  void set(std::string_view name, double value);
  std::optional<double> find(std::string_view name) const;
  // The value that `caller` depends on. If it is missing, throws ValueError that begins with `caller` and lists the
  // names.
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

  // The callback's state for a resumed training (remaining patience, best value so far), in the callback's own text
  // format. Checkpoints store it under the name. Callbacks of one name are counted in the order of
  // FitOptions::callbacks, which a resumed training must keep. A callback without a name stores nothing. set_state runs
  // before on_train_begin and throws ValueError for an invalid text. A callback that ended the training records this in
  // its state and ends the resumed training in on_train_begin.
  virtual std::string name() const { return {}; }
  virtual std::string state() const { return {}; }
  virtual void set_state(const std::string& /*state*/) {}

  virtual void on_train_begin(Fit&) {}
  // Called also if a resumed training starts within the epoch; counts().step tells. Epochs count from 0.
  virtual void on_epoch_begin(Fit&, std::int64_t /*epoch*/) {}
  virtual void on_step_begin(Fit&) {}
  // The logs hold the step's own values; Fit::averages has the means over the epoch so far. The step counts as
  // finished.
  virtual void on_step_end(Fit&, const Logs&) {}
  // The logs hold the means over the epoch and, prefixed with "val_", those of the evaluation. Later callbacks see what
  // this one sets in the logs. The epoch counts as finished.
  virtual void on_epoch_end(Fit&, std::int64_t /*epoch*/, Logs&) {}
  // Not called after a failure.
  virtual void on_train_end(Fit&) {}
  // Called after an exception on this rank, which Fit::run then rethrows.
  virtual void on_failure(Fit&, const std::exception&) noexcept {}
};

}  // namespace syncline::training
#pragma GCC visibility pop
