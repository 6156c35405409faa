// Loops in concretize (concretize.h): bodies for known shapes, and removal of unused parts.
#pragma once

#include <optional>
#include <vector>

#include "syncline/expr.h"

namespace syncline {

// Rebuilds the loop over inputs of known shapes and returns its outputs, in the old order. Concretizes the body, moves
// constants into it, and merges equal inputs and equal residuals. Returns nothing if sizes differ between iterations.
std::optional<std::vector<Expr>> concretize_loop(const Expr& loop, const std::vector<Expr>& inputs, bool simplify);

// Removes unread residuals, states and inputs from the loops under `roots`, and returns the new roots. A forward loop
// then stores only the residuals that the gradient reads.
std::vector<Expr> prune_loops(const std::vector<Expr>& roots);

}  // namespace syncline
