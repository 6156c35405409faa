// What is written for people and for other programs beside a training, which goes on when that fails.
#pragma once

#include <fmt/format.h>

#include <exception>

#include "runtime/training/say.h"

namespace syncline::training {

class BestEffort {
 public:
  // Runs the action. What it throws is one line on standard error, unless the time before failed too.
  template <class Action>
  void attempt(Action action) {
    try {
      action();
      failing_ = false;
    } catch (const std::exception& error) {
      if (!failing_) say(fmt::format("{}; training goes on", error.what()));
      failing_ = true;
    }
  }

 private:
  bool failing_ = false;
};

}  // namespace syncline::training
