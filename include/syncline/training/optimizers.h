// Keras 2's optimizers as backend functions: they make updates from a loss and variables. Formulas and defaults are
// those of Keras 2.3.1 (keras/optimizers.py); the plan makes each variable's update one pass over memory.
#pragma once

#include <span>
#include <vector>

#include "syncline/backend/variable.h"

#pragma GCC visibility push(default)
namespace syncline {

struct Optimizer {
  std::vector<Update> updates;      // for Function
  std::vector<Variable> variables;  // the trained variables
  std::vector<Expr> gradients;      // of the loss with respect to each variable; inputs of the updates
  std::vector<Variable> weights;    // the optimizer's state, in a fixed order; checkpoints save it
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

// Throws ValueError that names the variable if the loss does not depend on it.
Optimizer sgd(const Expr& loss, std::span<const Variable> variables, const SgdOptions& options = {});
Optimizer rmsprop(const Expr& loss, std::span<const Variable> variables, const RmspropOptions& options = {});
Optimizer adam(const Expr& loss, std::span<const Variable> variables, const AdamOptions& options = {});
Optimizer adadelta(const Expr& loss, std::span<const Variable> variables, const AdadeltaOptions& options = {});

}  // namespace syncline
#pragma GCC visibility pop
