// A training with given losses: an epoch is one step, and its loss is the next number. The decisions of callbacks then
// depend on these numbers alone.
#pragma once

#include <string>
#include <vector>

#include "syncline/backend/function.h"
#include "syncline/backend/variable.h"
#include "syncline/training/fit.h"

namespace syncline::training {

struct ScriptedFit {
  // Built in the current session. The log is called `name`.
  ScriptedFit(const std::vector<double>& losses, std::string name = "loss", double rate = 1);
  ScriptedFit(const ScriptedFit&) = delete;  // a fit points at the step
  ScriptedFit& operator=(const ScriptedFit&) = delete;

  // Trains from `state` (null: the beginning) for at most `epochs` epochs (0: to the end). Returns the last state.
  FitState run(std::vector<Callback*> callbacks, const FitState* state = nullptr, std::int64_t epochs = 0);

  std::vector<double> losses;
  std::string name;
  Variable weight;  // counts the steps
  Variable learning_rate;
  Function step;
};

}  // namespace syncline::training
