// What is written for people and for other programs beside a training, which goes on when that fails.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>

namespace syncline::training {

// A line on standard error. fmt::print throws if that cannot be written.
inline void say(const std::string& what) { std::fputs(("syncline: " + what + "\n").c_str(), stderr); }

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
