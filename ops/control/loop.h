// Loop: the one op for recurrence (rnn, foldl, foldr, map_fn). A body, itself a graph, runs once for each
// element of the sequences; states flow from one run to the next.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/graph/op.h"

namespace syncline {

// A value of the body that somebody outside wants: of every turn, stacked along a new first axis, or summed over turns.
struct Tap {
  Expr value;
  bool sum = false;
};

// What a loop computes in one turn. The placeholders stand for this turn's element of each sequence, the states as they
// come in, and the values captured from outside, which are the same in every turn. All other leaves in the body are
// constants.
//
// `taps` are the loop's tape: the gradient asks for what it needs of the forward turns, so the list grows while a graph
// is built (the one thing in a graph that does; nothing is ever taken away). A plan computes only the taps that are
// read.
struct LoopBody {
  std::vector<Expr> elements, states, captures;  // placeholders
  std::vector<Expr> next_states;
  std::vector<Tap> taps;
  bool reverse = false;  // from the last element to the first; stacks keep the elements' order

  // Next states, then taps.
  std::vector<Expr> roots() const;
  // A line a node, the same on every rank.
  std::string describe() const;
};

// Inputs: sequences [time, ...], initial states, captures. Outputs: final states, then a stack [time, ...] or a sum for
// each tap. Without any turn the final states are the initial ones and sums are zero.
struct Loop {
  static constexpr std::string_view kName = "loop";
  struct Attrs {
    std::shared_ptr<LoopBody> body;
  };
  static constexpr auto fields = std::tuple{field("body", &Attrs::body)};
  static std::vector<Meta> infer(const Attrs& a, std::span<const Meta> in);
  static Placed place(const Attrs& a, const PlaceArgs& args);
  static Expr simplify(const Attrs&, std::span<const Expr>, const Meta&) { return {}; }  // the executor runs it
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, std::span<const Expr> dy);
};

// The loop's output that holds `value`, a value of its body: asks for it if nobody has yet.
Expr tap(const Expr& loop, const Expr& value, bool sum = false);

}  // namespace syncline
