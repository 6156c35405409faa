// A training whose losses are given: an epoch is one step, its loss the next number. What callbacks decide is then a
// function of the numbers alone.
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

  // Trains from `state`, or the beginning, to the end; `epochs` after it at most. Returns where it then stands.
  FitState run(std::vector<Callback*> callbacks, const FitState* state = nullptr, std::int64_t epochs = 0);

  std::vector<double> losses;
  std::string name;
  Variable weight;  // counts the steps
  Variable learning_rate;
  Function step;
};

}  // namespace syncline::training
