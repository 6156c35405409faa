// Builds a Loop from a graph that was written as if its body were part of the whole.
#pragma once

#include <vector>

#include "ops/control/body.h"
#include "ops/control/loop.h"

namespace syncline {

// The body's placeholders must be newer than everything that the body is made of: make them, then build the body.
struct LoopParts {
  std::vector<Expr> elements, sequences;     // a placeholder, and the value [time, ...] that it goes through
  std::vector<Expr> states, initial_states;  // a placeholder, and its value in the first turn
  std::vector<Expr> next_states;
  std::vector<Tap> taps;
  bool reverse = false;
};

// A placeholder for one turn's element of a sequence.
Expr element_of(const Expr& sequence);

// The loop's output 0; its outputs are the final states, then the taps. What the body uses but does not depend on an
// element or a state is computed outside, once, and so are products of elements alone with a fixed matrix: one product
// over the whole sequence takes the place of one in each turn. Random numbers made in the body are drawn in each turn,
// and what is printed there is printed in each turn.
// Throws ShapeError and DTypeError if the parts do not fit together.
Expr make_loop(LoopParts parts);

}  // namespace syncline
