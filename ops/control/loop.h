// Loop: the only op for recurrence (rnn, foldl, foldr, map_fn). It runs a body graph once for each element of the
// sequences and carries states from one iteration to the next.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/graph/op.h"

namespace syncline {

// A value of the body that is an output of the loop: stacked over iterations along a new first axis, or summed over
// iterations.
struct Residual {
  Expr value;
  bool sum = false;
};

// The computation of one iteration. Placeholders represent this iteration's element of each sequence, the incoming
// states, and the captured outside values, which are equal in every iteration. All other leaves in the body are
// constants.
//
// The gradient appends the forward values that it needs to `residuals`, so the list grows while a graph is built. That
// list is the only mutable part of a graph, and entries are never removed. A plan computes only the residuals that are
// read.
struct LoopBody {
  std::vector<Expr> elements, states, captures;  // placeholders
  std::vector<Expr> next_states;
  std::vector<Residual> residuals;
  bool reverse = false;  // runs from the last element to the first; stacks keep element order

  // Returns the next states, then the residuals.
  std::vector<Expr> roots() const;
  // Describes the body as text that is equal on all ranks.
  std::string describe() const;
};

// Inputs: sequences [time, ...], initial states, captures. Outputs: final states, then a stack [time, ...] or a sum for
// each residual. With zero iterations, the final states are the initial states and sums are zero.
struct Loop {
  static constexpr std::string_view kName = "loop";
  struct Attrs {
    std::shared_ptr<LoopBody> body;
  };
  static constexpr auto fields = std::tuple{field("body", &Attrs::body)};
  static std::vector<Meta> infer(const Attrs& a, std::span<const Meta> in);
  static Placed place(const Attrs& a, const PlaceArgs& args);
  static Expr simplify(const Attrs&, std::span<const Expr>, const Meta&) { return {}; }  // plans have steps for loops
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, std::span<const Expr> dy);
};

// Returns the loop's output that holds `value`, a value of its body. Adds a residual if none exists.
Expr residual(const Expr& loop, const Expr& value, bool sum = false);

}  // namespace syncline
