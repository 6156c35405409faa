// Monitor: the log by which a callback judges an epoch, and its direction of improvement.
#pragma once

#include <cstdint>
#include <string>

#include "syncline/training/callback.h"

#pragma GCC visibility push(default)
namespace syncline::training {

enum class Mode : std::uint8_t {
  kAuto,  // higher is better if "acc" is in the name, as in Keras
  kMin,
  kMax,
};

class Monitor {
 public:
  // `caller` begins the errors' texts.
  Monitor(std::string caller, std::string name, Mode mode);

  const std::string& name() const { return name_; }
  bool higher_is_better() const { return higher_is_better_; }
  // Worse than every number; the initial "best so far".
  double worst() const;
  // NaN is never better.
  bool better(double a, double b) const { return higher_is_better_ ? a > b : a < b; }
  // `value`, made better by `delta`.
  double improved(double value, double delta) const { return higher_is_better_ ? value + delta : value - delta; }
  // Throws ValueError, which lists the existing names, if the logs lack this one.
  double of(const Logs& logs) const { return logs.monitored(caller_, name_); }

 private:
  std::string caller_, name_;
  bool higher_is_better_;
};

}  // namespace syncline::training
#pragma GCC visibility pop
