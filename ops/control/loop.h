// Loop: the one op for recurrence (rnn, and later foldl, foldr, map_fn). A body, itself a graph, runs once for each
// element of the sequences; states flow from one run to the next.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/op.h"

namespace syncline {

// What a loop computes in one turn. The placeholders stand for this turn's element of each sequence, the states as they
// come in, and the values captured from outside, which are the same in every turn. All other leaves in the body are
// variables and constants.
//
// `taps` are values of the body that somebody outside wants from every turn, stacked along a new first axis. They are
// the loop's tape: the gradient asks for what it needs of the forward turns, so the list grows while a graph is built
// (the one thing in a graph that does). A plan computes only the taps that are read.
struct LoopBody {
  std::vector<Expr> elements, states, captures;  // placeholders
  std::vector<Expr> next_states;
  std::vector<Expr> taps;
  bool reverse = false;  // from the last element to the first; taps keep the elements' order

  std::string describe() const;
};

// Inputs: sequences [time, ...], initial states, captures. Outputs: final states, then a stack [time, ...] for each
// tap.
struct Loop {
  static constexpr std::string_view kName = "loop";
  struct Attrs {
    std::shared_ptr<LoopBody> body;
  };
  static constexpr auto fields = std::tuple{field("body", &Attrs::body)};
  static std::vector<Meta> infer(const Attrs&, std::span<const Meta> in);
  static Placed place(const Attrs&, const PlaceArgs& args);
  static Expr simplify(const Attrs&, std::span<const Expr>, const Meta&) { return {}; }  // the executor runs it
  static std::vector<Expr> grad(const Attrs&, const Expr& y, std::span<const Expr> dy);
};

}  // namespace syncline
