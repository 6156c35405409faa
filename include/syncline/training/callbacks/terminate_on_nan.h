// TerminateOnNaN: ends a training after a step whose loss is NaN or infinite.
#pragma once

#include "syncline/distributed/communicator.h"
#include "syncline/training/callback.h"

#pragma GCC visibility push(default)
namespace syncline::training {

class TerminateOnNaN : public Callback {
 public:
  // Rank 0 of the wire reports it on standard error. Null: one process.
  explicit TerminateOnNaN(const comm::Communicator* wire) : wire_(wire) {}
  void on_step_end(Fit& fit, const Logs& logs) override;

 private:
  const comm::Communicator* wire_;
};

}  // namespace syncline::training
#pragma GCC visibility pop
