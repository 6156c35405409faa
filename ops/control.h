// Recurrence of the Keras backend.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "ops/expr.h"

namespace syncline {

// One turn: the output for this turn's input (samples, ...), and the new states. `states` are followed by the
// constants. It is called once beforehand with the first input, to learn the output's shape, and then once for the
// loop's body (unrolled: once a turn).
using RnnStep = std::function<std::pair<Expr, std::vector<Expr>>(const Expr& x, const std::vector<Expr>& states)>;

struct RnnOptions {
  // From the last input to the first; the outputs then come in that order too.
  bool go_backwards = false;
  // (samples, time) or (samples, time, 1), any dtype; 0 where an input does not count: the states stay, and the output
  // is that of the turn before, or 0 in the first.
  Expr mask = {};
  std::vector<Expr> constants = {};
  // Every turn becomes part of the graph: for few turns. Needs a known number of them.
  bool unroll = false;
  // The number of turns, if `unroll` cannot see it from inputs.
  std::optional<std::int64_t> input_length = {};
};

struct RnnResult {
  Expr last_output;              // (samples, ...)
  Expr outputs;                  // (samples, time, ...)
  std::vector<Expr> new_states;  // after the last turn
};

// Goes through inputs (samples, time, ...) along time. What step_function uses beside its arguments is computed once;
// products of the inputs alone with a matrix are formed for all turns at once, and so are weights' gradients.
// Throws ShapeError if inputs have fewer than 3 axes, or the mask or a new state does not fit, and ValueError if the
// number of states changes, if there is a mask but no state, or if `unroll` meets an unknown number of turns.
RnnResult rnn(const RnnStep& step_function, const Expr& inputs, const std::vector<Expr>& initial_states,
              const RnnOptions& options = {});

}  // namespace syncline
