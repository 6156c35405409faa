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
  std::vector<Expr> states, initial_states;  // placeholders, and their values in the first turn
  std::vector<Expr> next_states;
  std::vector<Tap> taps;
  bool reverse = false;
};

// Creates a placeholder for the element of `sequence` in one turn.
Expr element_of(const Expr& sequence);

// Returns output 0 of the loop; its outputs are the final states, then the taps. Computes values that depend on no
// element or state once, outside the loop. Hoists products of elements with a fixed matrix: one product over the whole
// sequence replaces one per turn. Random draws and prints in the body happen in every turn.
// Throws ShapeError and DTypeError if the parts do not fit together.
Expr make_loop(LoopParts parts);

}  // namespace syncline
