// Monitor: a number in the logs that a callback judges an epoch by, and which way is better.
#pragma once

#include <cstdint>
#include <string>

#include "syncline/training/callback.h"

namespace syncline::training {

enum class Mode : std::uint8_t {
  kAuto,  // higher is better if "acc" is in the name, as in Keras
  kMin,
  kMax,
};

class Monitor {
 public:
  // `caller` is for errors.
  Monitor(std::string caller, std::string name, Mode mode);

  const std::string& name() const { return name_; }
  // Worse than every number: what "the best so far" is before there is one.
  double worst() const;
  // NaN is never better.
  bool better(double a, double b) const { return higher_is_better_ ? a > b : a < b; }
  // `value`, made better by `delta`.
  double improved(double value, double delta) const { return higher_is_better_ ? value + delta : value - delta; }
  // Throws ValueError, with the names that there are, if the logs have none of this name.
  double of(const Logs& logs) const { return logs.monitored(caller_, name_); }

 private:
  std::string caller_, name_;
  bool higher_is_better_;
};

}  // namespace syncline::training
