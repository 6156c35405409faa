// EarlyStopping: ends a training that stops improving. Keras 2.3.1's rule: an epoch is better if it beats the best one
// so far by more than min_delta; the training ends after `patience` (at least one) consecutive epochs that are not
// better.
//
//     EarlyStopping stopping({.monitor = "val_loss", .patience = 3, .restore = model.weights()});
//     const auto& kept = stopping.kept();  // for a training that is to be resumed
//     saved.optimizer.insert(saved.optimizer.end(), kept.begin(), kept.end());
//
// Every rank has one. Checkpoints hold its state. The values to restore are in separate variables, which a checkpoint
// holds if the program adds them as shown.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "syncline/backend/variable.h"
#include "syncline/training/callbacks/monitor.h"

#pragma GCC visibility push(default)
namespace syncline::training {

struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  double min_delta = 0;
  std::int64_t patience = 0;
  Mode mode = Mode::kAuto;
  std::optional<double> baseline{};  // what the first better epoch must beat
  // Variables that get back their values of the best epoch when this callback ends the training. Unchanged if the
  // training ends otherwise, or if no epoch was better.
  std::vector<Variable> restore{};
};

class EarlyStopping : public Callback {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options = {});

  // The values to restore, as variables for SavedModel::optimizer. Empty without `restore`.
  const std::vector<Variable>& kept() const { return kept_; }
  // The epoch, counted from 0, after which this callback ended the training.
  std::optional<std::int64_t> stopped_epoch() const { return stopped_; }

  std::string name() const override { return "early_stopping/" + monitor_.name(); }
  std::string state() const override;
  void set_state(const std::string& state) override;
  // Throws ValueError if a resumed training lacks the values to restore.
  void on_train_begin(Fit& fit) override;
  void on_epoch_end(Fit& fit, std::int64_t epoch, Logs& logs) override;

 private:
  void reset();
  void keep(std::int64_t epoch);
  void restore() const;

  EarlyStoppingOptions options_;
  Monitor monitor_;
  std::vector<Variable> kept_;  // copies of options_.restore, then their epoch, or -1
  double best_ = 0;
  std::int64_t best_epoch_ = -1, wait_ = 0;
  std::optional<std::int64_t> stopped_;
};

}  // namespace syncline::training
#pragma GCC visibility pop
