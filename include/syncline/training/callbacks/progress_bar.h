// ProgressBar: prints an epoch's progress, logs and speed to standard output of rank 0: a bar on a terminal, plain
// lines otherwise. A failed write does not end the training.
#pragma once

#include <chrono>
#include <cstdint>

#include "syncline/distributed/communicator.h"
#include "syncline/training/callback.h"

#pragma GCC visibility push(default)
namespace syncline::training {

class ProgressBar : public Callback {
 public:
  // Rank 0 of the communicator prints. Null: one process.
  explicit ProgressBar(const comm::Communicator* communicator);

  void on_epoch_begin(Fit& fit, std::int64_t epoch) override;
  void on_step_end(Fit& fit, const Logs& logs) override;
  void on_epoch_end(Fit& fit, std::int64_t epoch, Logs& logs) override;
  void on_train_end(Fit& fit) override;
  void on_failure(Fit& fit, const std::exception& error) noexcept override;

 private:
  void print(const Fit& fit, std::int64_t done, const Logs& averages, bool last);
  void finish(const Fit& fit);

  using Clock = std::chrono::steady_clock;
  const bool first_, terminal_;
  bool open_ = false;  // the last line of the current epoch is not printed yet
  std::int64_t epoch_ = 0, begin_step_ = 0, rows_ = 0;
  Clock::time_point begin_{}, printed_{};
};

}  // namespace syncline::training
#pragma GCC visibility pop
