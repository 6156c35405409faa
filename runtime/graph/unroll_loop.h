// unroll_loop: inlines each iteration of a loop whose sizes differ between iterations into the surrounding graph.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "ops/control/loop.h"
#include "syncline/expr.h"

namespace syncline {

// A value in the new graph: `whole`, or one value per iteration in sequence order, because their shapes may differ.
// Both are empty while the value is unknown.
struct IterationValue {
  Expr whole{};
  std::vector<IterationValue> iterations{};

  bool is_known() const;
  // `whole`, or the stack of all iterations. Throws ShapeError if their shapes differ.
  Expr stacked() const;
};

// The loop's inputs.
struct UnrolledInputs {
  std::int64_t iterations = 0;
  std::function<std::vector<Meta>()> outputs;  // metas of a loop without iterations
  std::function<IterationValue(std::size_t sequence, std::int64_t iteration)> element;
  std::vector<Expr> initial_states, captures;
};

// RewriteBody returns the body's roots in one iteration, with its leaves replaced.
using LeafValues = std::vector<std::pair<Expr, IterationValue>>;
using RewriteBody = std::function<std::vector<IterationValue>(std::int64_t iteration, const LeafValues& leaves)>;

// An empty state is unknown.
struct Unrolled {
  std::vector<Expr> states;
  std::vector<IterationValue> residuals;
};

// Throws ValueError for a body that draws random numbers or prints, ShapeError if a state's shape changes.
Unrolled unroll_loop(const Expr& loop, const UnrolledInputs& inputs, const RewriteBody& rewrite);

}  // namespace syncline
