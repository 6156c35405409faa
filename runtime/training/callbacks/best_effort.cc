#include "syncline/training/callbacks/best_effort.h"

#include <exception>
#include <string>

#include "runtime/training/say.h"

namespace syncline::training {

void BestEffort::attempt(const std::function<void()>& action) {
  try {
    action();
    failing_ = false;
  } catch (const std::exception& error) {
    if (!failing_) say(std::string(error.what()) + "; training goes on");
    failing_ = true;
  }
}

}  // namespace syncline::training
