// Callbacks that set an optimizer's learning rate (Optimizer::learning_rate), by Keras 2.3.1's rules. Both add it to
// the logs of an epoch as "lr", and a checkpoint holds it with their state. Every rank has one.
#pragma once

#include <functional>
#include <string>

#include "syncline/backend/variable.h"
#include "syncline/training/callbacks/monitor.h"

#pragma GCC visibility push(default)
namespace syncline::training {

// Calls a function at the beginning of each epoch.
class LearningRateScheduler : public Callback {
 public:
  // Computes the rate from the epoch, counted from 0, and the rate so far, and from nothing else: all ranks must agree.
  using Schedule = std::function<double(std::int64_t epoch, double learning_rate)>;

  LearningRateScheduler(Variable learning_rate, Schedule schedule);

  std::string name() const override { return "learning_rate_scheduler"; }
  std::string state() const override;
  void set_state(const std::string& state) override;
  void on_train_begin(Fit& fit) override;
  // Throws ValueError for a rate that is not finite.
  void on_epoch_begin(Fit& fit, std::int64_t epoch) override;
  void on_epoch_end(Fit& fit, std::int64_t epoch, Logs& logs) override;

 private:
  Variable learning_rate_;
  Schedule schedule_;
  std::int64_t asked_ = -1;  // epoch of the last call; a training that resumes within it has its rate already
  bool resumed_ = false;     // set_state was called since the last training
};

struct ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";
  double factor = 0.1;
  std::int64_t patience = 10;
  Mode mode = Mode::kAuto;
  double min_delta = 1e-4;
  std::int64_t cooldown = 0;  // epochs after a reduction that count no patience
  double min_lr = 0;
};

// Multiplies the rate by `factor` after `patience` consecutive epochs that did not beat the best one by more than
// min_delta.
class ReduceLROnPlateau : public Callback {
 public:
  // Throws ValueError for a factor of 1 or more.
  explicit ReduceLROnPlateau(Variable learning_rate, ReduceLROnPlateauOptions options = {});

  std::string name() const override { return "reduce_lr_on_plateau/" + monitor_.name(); }
  std::string state() const override;
  void set_state(const std::string& state) override;
  void on_train_begin(Fit& fit) override;
  void on_epoch_end(Fit& fit, std::int64_t epoch, Logs& logs) override;

 private:
  void reset();
  void reduce();

  Variable learning_rate_;
  ReduceLROnPlateauOptions options_;
  Monitor monitor_;
  double best_ = 0;
  std::int64_t wait_ = 0, cooldown_ = 0;
};

}  // namespace syncline::training
#pragma GCC visibility pop
