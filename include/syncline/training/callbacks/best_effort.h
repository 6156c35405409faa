// What is written for people and for other programs beside a training, which goes on when that fails.
#pragma once

#include <functional>

namespace syncline::training {

class BestEffort {
 public:
  // Runs the action. What it throws is one line on standard error, unless the time before failed too.
  void attempt(const std::function<void()>& action);

 private:
  bool failing_ = false;
};

}  // namespace syncline::training
