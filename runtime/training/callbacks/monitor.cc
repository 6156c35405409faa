#include "syncline/training/callbacks/monitor.h"

#include <limits>

namespace syncline::training {

Monitor::Monitor(std::string caller, std::string name, Mode mode)
    : caller_(std::move(caller)),
      name_(std::move(name)),
      higher_is_better_(mode == Mode::kMax || (mode == Mode::kAuto && name_.find("acc") != std::string::npos)) {}

double Monitor::worst() const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return higher_is_better_ ? -kInfinity : kInfinity;
}

}  // namespace syncline::training
