// Progress of an epoch: a bar on a terminal, plain lines elsewhere, nothing on other ranks than the first.
#pragma once

#include <chrono>
#include <cstdint>

#include "runtime/training/fit.h"

namespace syncline::examples {

class Progress : public training::Callback {
 public:
  explicit Progress(bool shown);

  void on_epoch_begin(training::Fit& fit, std::int64_t epoch) override;
  void on_step_end(training::Fit& fit, const training::Logs& logs) override;
  void on_epoch_end(training::Fit& fit, std::int64_t epoch, training::Logs& logs) override;
  void on_train_end(training::Fit& fit) override;

 private:
  void print(const training::Fit& fit, std::int64_t done, const training::Logs& averages, bool last);

  using Clock = std::chrono::steady_clock;
  bool shown_, terminal_;
  bool open_ = false;  // an epoch has begun whose last line is not printed
  std::int64_t epoch_ = 0, first_ = 0, rows_ = 0;
  Clock::time_point begin_{}, printed_{};
};

}  // namespace syncline::examples
