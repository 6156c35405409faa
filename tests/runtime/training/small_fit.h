// A small network with dropout, its data and its Fit, for tests of trainings. The last batch of an epoch has two rows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "syncline/backend/function.h"
#include "syncline/training/fit.h"
#include "syncline/training/optimizers.h"

namespace syncline::training {

inline constexpr std::int64_t kStepsOfEpoch = 6;

// Records its calls ("step end 1"), and stops, pauses or fails the training at a given one.
class Witness : public Callback {
 public:
  std::vector<std::string> seen;
  std::vector<Logs> epochs;  // the logs of each epoch
  std::string stop_at, pause_at, throw_at;

  void on_train_begin(Fit& fit) override { note(fit, "train begin"); }
  void on_epoch_begin(Fit& fit, std::int64_t epoch) override { note(fit, "epoch begin " + std::to_string(epoch)); }
  void on_step_begin(Fit& fit) override { note(fit, "step begin " + std::to_string(fit.counts().global_step)); }
  void on_step_end(Fit& fit, const Logs&) override {
    note(fit, "step end " + std::to_string(fit.counts().global_step));
  }
  void on_epoch_end(Fit& fit, std::int64_t epoch, Logs& logs) override;
  void on_train_end(Fit& fit) override { note(fit, "train end"); }
  void on_failure(Fit&, const std::exception& error) noexcept override;

 private:
  void note(Fit& fit, const std::string& what);
};

// Built in the current session. All members are public for tests.
struct SmallFit {
  // One update takes `accumulate` calls.
  SmallFit(std::int64_t epochs, std::vector<Callback*> callbacks, std::int64_t accumulate = 1);
  SmallFit(const SmallFit&) = delete;  // the fit points into it
  SmallFit& operator=(const SmallFit&) = delete;

  // The model's variables, then the optimizer's.
  std::vector<Variable> variables() const;
  std::uint64_t digest() const;

  Variable kernel, bias, top;
  Optimizer optimizer;
  std::vector<Variable> accumulated;  // the accumulation's state, if an update takes several calls
  Function step, score;
  std::unique_ptr<Fit> fit;
};

// Throws Death when a step begins, in the place of a killed process.
struct Death {};
struct Killer : Callback {
  explicit Killer(std::int64_t at) : step(at) {}
  void on_step_begin(Fit& fit) override {
    if (fit.counts().global_step == step) throw Death{};
  }
  std::int64_t step;
};

}  // namespace syncline::training
