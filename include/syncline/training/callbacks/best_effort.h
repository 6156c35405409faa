// BestEffort: runs output actions whose failure must not end the training.
#pragma once

#include <functional>

#pragma GCC visibility push(default)
namespace syncline::training {

class BestEffort {
 public:
  // Runs the action. Prints an exception as one line on standard error, unless the previous attempt failed too.
  void attempt(const std::function<void()>& action);

 private:
  bool failing_ = false;
};

}  // namespace syncline::training
#pragma GCC visibility pop
