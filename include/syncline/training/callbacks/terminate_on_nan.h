// TerminateOnNaN: ends a training after a step whose loss is NaN or infinite.
#pragma once

#include <string>
#include <utility>

#include "syncline/distributed/communicator.h"
#include "syncline/training/callback.h"

#pragma GCC visibility push(default)
namespace syncline::training {

class TerminateOnNaN : public Callback {
 public:
  // Rank 0 of the communicator reports it on standard error. Null: one process. `monitor`: the name of the loss in the
  // logs.
  explicit TerminateOnNaN(const comm::Communicator* communicator, std::string monitor = "loss")
      : communicator_(communicator), monitor_(std::move(monitor)) {}
  // Throws ValueError, which lists the existing names, if the logs lack the loss.
  void on_step_end(Fit& fit, const Logs& logs) override;

 private:
  const comm::Communicator* communicator_;
  std::string monitor_;
};

}  // namespace syncline::training
#pragma GCC visibility pop
