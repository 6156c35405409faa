// Gradient accumulation: a step of k batches instead of one, without the memory of a batch k times as large.
//
// The gradients of each batch are added to variables of their own. Every k-th call of the function makes the update,
// with the mean of the k gradients; in the other calls no variable of the model or of the optimizer changes. The sums
// are partial: each rank adds up what its rows contribute, so that gradients cross the wire in the k-th call only. What
// else a function computes of the batch (its loss, statistics of normalization) it computes, and transfers, in each
// call. A sum of float16 gradients is float32.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "syncline/backend/variable.h"
#include "syncline/training/optimizers.h"

namespace syncline {

struct Accumulation {
  std::vector<Expr> totals;     // of each gradient the mean over k calls; whole in a k-th one
  Expr waiting;                 // a truth value: this is not a k-th call
  std::vector<Update> updates;  // of the state, for Function
  // How many batches have been added since the last update, then the sums. They are partial variables: get_value takes
  // a step of all ranks. Whoever saves them all resumes within the k calls; setting the first one to 0 begins anew.
  std::vector<Variable> state;

  // The same update, in every k-th call only.
  Update when_due(const Update& update) const;
};

// gradients[i] with respect to variables[i]. Throws ValueError if `steps`, the k above, is less than 1.
Accumulation accumulate_gradients(std::span<const Expr> gradients, std::span<const Variable> variables,
                                  std::int64_t steps);

struct AccumulatingOptimizer : Optimizer {
  std::vector<Variable> accumulated;  // Accumulation::state, which `weights` does not contain
};
// An optimizer of the same formulas and the same weights whose updates take `steps` calls:
//   const AccumulatingOptimizer optimizer = accumulate(adam(loss, variables), 4);
// Throws as accumulate_gradients.
AccumulatingOptimizer accumulate(const Optimizer& optimizer, std::int64_t steps);

}  // namespace syncline
