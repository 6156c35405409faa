// Loops in the first pass of a plan (concretize.h).
#pragma once

#include <optional>
#include <vector>

#include "syncline/expr.h"

namespace syncline {

// The outputs of the loop over new inputs of known shapes, in their old order: its body is concretized too, constants
// become part of it, and equal inputs and equal taps one. Nothing if sizes differ between iterations.
std::optional<std::vector<Expr>> concretize_loop(const Expr& loop, const std::vector<Expr>& inputs, bool simplify);

// The same roots over loops that compute only what is read: taps and states that nobody needs are gone, and so are
// inputs, such as those that were wanted for their shape. So a forward loop stores no tape beyond what the gradient
// still uses.
std::vector<Expr> prune_loops(const std::vector<Expr>& roots);

}  // namespace syncline
