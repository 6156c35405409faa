// MetricsExporter: a file of metrics (runtime/training/callbacks/metrics_file.h) for monitoring systems: how far the
// training is, its logs, its speed, when it last saved, and how it ended. docs/training.md lists them. A file that
// cannot be written is one line on standard error.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "syncline/distributed/communicator.h"
#include "syncline/training/callback.h"
#include "syncline/training/callbacks/best_effort.h"

namespace syncline::training {

struct MetricsExporterOptions {
  std::string path;                          // the node exporter wants a name that ends in ".prom"
  const comm::Communicator* wire = nullptr;  // rank 0 writes; null: one process
  std::string checkpoints{};                 // the folder whose `latest` was the last save; "": there is none
  std::chrono::milliseconds pause{5000};     // between two files, beside one after each epoch
};

class MetricsExporter : public Callback {
 public:
  explicit MetricsExporter(MetricsExporterOptions options);

  void on_train_begin(Fit& fit) override;
  void on_step_end(Fit& fit, const Logs& logs) override;
  void on_epoch_end(Fit& fit, std::int64_t epoch, Logs& logs) override;
  void on_train_end(Fit& fit) override;
  void on_failure(Fit& fit, const std::exception& error) noexcept override;

 private:
  using Clock = std::chrono::steady_clock;
  void write(const Fit& fit, const char* state);

  MetricsExporterOptions options_;
  const bool first_;  // this is rank 0
  Logs logs_;         // the newest of each
  std::int64_t rows_ = 0;
  double speed_ = 0;  // rows a second between the last two files
  Clock::time_point written_{};
  BestEffort writing_;
};

}  // namespace syncline::training
