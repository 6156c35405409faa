// Keras 2's optimizers, written in backend functions: from a loss and variables to updates. The formulas and defaults
// are those of Keras 2.3.1 (keras/optimizers.py); the plan makes each variable's update one pass over memory.
#pragma once

#include <span>
#include <vector>

#include "syncline/backend/variable.h"

namespace syncline {

struct Optimizer {
  std::vector<Update> updates;      // for Function
  std::vector<Variable> variables;  // those that are trained
  std::vector<Expr> gradients;      // of the loss with respect to each; what the updates are made of
  std::vector<Variable> weights;    // its own state, in a fixed order: what a checkpoint saves
  Variable learning_rate;           // may be changed with set_value; not part of `weights`, as in Keras
};

struct SgdOptions {
  double learning_rate = 0.01;
  double momentum = 0;
  bool nesterov = false;
};
struct RmspropOptions {
  double learning_rate = 0.001;
  double rho = 0.9;
};
struct AdamOptions {
  double learning_rate = 0.001;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
};
struct AdadeltaOptions {
  double learning_rate = 1;
  double rho = 0.95;
};

// Throws ValueError naming the variable if the loss does not depend on one of them.
Optimizer sgd(const Expr& loss, std::span<const Variable> variables, const SgdOptions& options = {});
Optimizer rmsprop(const Expr& loss, std::span<const Variable> variables, const RmspropOptions& options = {});
Optimizer adam(const Expr& loss, std::span<const Variable> variables, const AdamOptions& options = {});
Optimizer adadelta(const Expr& loss, std::span<const Variable> variables, const AdadeltaOptions& options = {});

}  // namespace syncline
