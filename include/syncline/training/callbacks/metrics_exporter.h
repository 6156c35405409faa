// MetricsExporter: a metrics file (runtime/training/callbacks/metrics_file.h) for monitoring systems: the training's
// progress, logs, speed, last save and end. docs/training.md lists the metrics. If writing fails, it prints one line on
// standard error.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "syncline/distributed/communicator.h"
#include "syncline/training/callback.h"
#include "syncline/training/callbacks/best_effort.h"

#pragma GCC visibility push(default)
namespace syncline::training {

struct MetricsExporterOptions {
  std::string path;                                  // the node exporter requires a name that ends in ".prom"
  const comm::Communicator* communicator = nullptr;  // rank 0 writes; null: one process
  std::string checkpoints{};                         // the folder whose `latest` is the last save; "": none
  std::chrono::milliseconds pause{5000};             // between two files; each epoch's end writes one too
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
  const bool first_;  // true on rank 0
  Logs logs_;         // the newest value of each log
  std::int64_t rows_ = 0;
  double speed_ = 0;  // rows per second between the last two files
  Clock::time_point written_{};
  BestEffort writing_;
};

}  // namespace syncline::training
#pragma GCC visibility pop
