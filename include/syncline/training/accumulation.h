// Gradient accumulation: one update from k batches, with the memory of one batch.
//
// Each call of the function adds its batch's gradients to separate variables. Every k-th call updates with the mean of
// the k gradients; the other calls change no variable of the model or the optimizer. The sums are partial variables:
// each rank sums its own rows' gradients, and only the k-th call transfers gradients. Every call computes and transfers
// the function's other values (its loss, statistics of normalization). A sum of float16 gradients is float32.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "syncline/backend/variable.h"
#include "syncline/training/optimizers.h"

#pragma GCC visibility push(default)
namespace syncline {

struct Accumulation {
  std::vector<Expr> totals;     // mean of each gradient over k calls; complete in a k-th call
  Expr waiting;                 // bool: this is not a k-th call
  std::vector<Update> updates;  // updates of the state, for Function
  // The number of batches added since the last update, then the sums. They are partial variables: get_value is
  // collective. If all are saved, a training resumes within the k calls; setting the first one to 0 starts over.
  std::vector<Variable> state;

  // `update`, applied only in every k-th call.
  Update when_due(const Update& update) const;
};

// gradients[i] is with respect to variables[i]. Throws ValueError if `steps` (k) is less than 1.
Accumulation accumulate_gradients(std::span<const Expr> gradients, std::span<const Variable> variables,
                                  std::int64_t steps);

struct AccumulatingOptimizer : Optimizer {
  std::vector<Variable> accumulated;  // Accumulation::state, which `weights` does not contain
};
// An optimizer with the same formulas and weights that updates once in `steps` calls:
//   const AccumulatingOptimizer optimizer = accumulate(adam(loss, variables), 4);
// Throws as accumulate_gradients does.
AccumulatingOptimizer accumulate(const Optimizer& optimizer, std::int64_t steps);

}  // namespace syncline
#pragma GCC visibility pop
