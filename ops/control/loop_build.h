// Builds a Loop from a graph whose body was written as part of the enclosing graph.
#pragma once

#include <vector>

#include "ops/control/body.h"
#include "ops/control/loop.h"

namespace syncline {

// Create the placeholders first, then build the body: make_loop searches only nodes that are newer than the
// placeholders.
struct LoopParts {
  std::vector<Expr> elements, sequences;     // placeholders, and the values [time, ...] that they iterate over
  std::vector<Expr> states, initial_states;  // placeholders, and their values in the first iteration
  std::vector<Expr> next_states;
  std::vector<Residual> residuals;
  bool reverse = false;
};

// Creates a placeholder for the element of `sequence` in one iteration.
Expr element_of(const Expr& sequence);

// Returns output 0 of the loop; its outputs are the final states, then the residuals. Computes values that depend on no
// element or state once, outside the loop. Hoists products of elements with a fixed matrix: one product over the whole
// sequence replaces one per iteration. Random draws and prints in the body happen in every iteration.
// Throws ShapeError and DTypeError if the parts do not fit together.
Expr make_loop(LoopParts parts);

}  // namespace syncline
