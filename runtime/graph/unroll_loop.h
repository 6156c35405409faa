// A loop whose sizes differ between iterations has no one body: each iteration becomes part of the graph around it.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "ops/control/loop.h"
#include "syncline/expr.h"

namespace syncline {

// A value in terms of the new graph: whole, or that of each iteration, in the order of the sequence, since their shapes
// may differ. Neither: not known yet.
struct IterationValue {
  Expr whole{};
  std::vector<IterationValue> iterations{};

  bool is_known() const;
  // All iterations stacked, if they are not one value already. Throws ShapeError if their shapes differ.
  Expr stacked() const;
};

// What the loop reads.
struct UnrolledInputs {
  std::int64_t iterations = 0;
  std::function<std::vector<Meta>()> outputs;  // what the loop gives without iterations
  std::function<IterationValue(std::size_t sequence, std::int64_t iteration)> element;
  std::vector<Expr> initial_states, captures;
};

// The roots of the body in one iteration, for what stands for its leaves.
using LeafValues = std::vector<std::pair<Expr, IterationValue>>;
using RewriteBody = std::function<std::vector<IterationValue>(std::int64_t iteration, const LeafValues& leaves)>;

// A state may be empty: not known yet.
struct Unrolled {
  std::vector<Expr> states;
  std::vector<IterationValue> taps;
};

// Throws ValueError for a body that draws random numbers or prints.
Unrolled unroll_loop(const Expr& loop, const UnrolledInputs& inputs, const RewriteBody& rewrite);

}  // namespace syncline
