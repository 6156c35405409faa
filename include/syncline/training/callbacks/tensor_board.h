// TensorBoard: event files for TensorBoard (runtime/training/callbacks/event_file.h), in folders and under names that
// it shows side by side:
//
//     FOLDER/train        batch_loss after each step, epoch_loss after each epoch, ...
//     FOLDER/validation   epoch_loss: the logs that begin with "val_", without that
//
// Both count finished steps, so steps that a resumed training repeats replace the earlier values. If writing fails, it
// prints one line on standard error.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "syncline/distributed/communicator.h"
#include "syncline/training/callback.h"
#include "syncline/training/callbacks/best_effort.h"

#pragma GCC visibility push(default)
namespace syncline::io {
class EventFile;
}  // namespace syncline::io

namespace syncline::training {

struct TensorBoardOptions {
  std::string folder;
  const comm::Communicator* communicator = nullptr;  // rank 0 writes; null: one process
  std::int64_t every = 1;                            // interval in steps between values of batches; 0: none
};

class TensorBoard : public Callback {
 public:
  // Throws ValueError for a negative `every`.
  explicit TensorBoard(TensorBoardOptions options);
  ~TensorBoard() override;

  void on_train_begin(Fit& fit) override;
  void on_step_end(Fit& fit, const Logs& logs) override;
  void on_epoch_end(Fit& fit, std::int64_t epoch, Logs& logs) override;
  void on_train_end(Fit& fit) override;
  void on_failure(Fit& fit, const std::exception& error) noexcept override;

 private:
  io::EventFile& made(std::unique_ptr<io::EventFile>& file, const char* folder);
  void flush();

  TensorBoardOptions options_;
  const bool first_;             // true on rank 0
  std::int64_t first_step_ = 0;  // values from this step on in earlier files are obsolete: the steps are repeated
  std::unique_ptr<io::EventFile> train_, validation_;
  std::chrono::steady_clock::time_point flushed_{};
  BestEffort writing_;
};

}  // namespace syncline::training
#pragma GCC visibility pop
