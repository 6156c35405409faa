#include "runtime/loop_body.h"

#include "ops/control/loop.h"
#include "ops/leaf.h"
#include "runtime/collectives.h"
#include "runtime/concretize.h"

namespace syncline {
namespace {

// The placement of one turn's part of a value that is stacked along a new first axis.
Placement of_one_turn(Placement whole) { return whole.is_split() ? Placement::split(whole.axis - 1) : whole; }

// A body as this plan needs it: with known shapes, the taps that are read, and placements.
struct PlacedBody {
  std::vector<Expr> feeds;
  std::vector<Expr> roots;
  PlacementMap placement;
};

PlacedBody place_body(const Expr& loop, const std::vector<Expr>& outputs, const LocalView& local,
                      const LowerRequest& request) {
  const LoopBody& body = *loop.attrs<Loop::Attrs>().body;
  const std::size_t n_elements = body.elements.size(), n_states = body.states.size();
  PlacedBody placed;
  Bindings bindings;
  std::vector<Placement> wanted;
  auto bind = [&](const Expr& inner, const Expr& outer, bool element) {
    Shape shape = outer.shape();
    if (element) shape.erase(0);
    const Expr feed = apply<Placeholder>({}, {outer.dtype(), shape, placed.feeds.size()}, inner.name());
    const Placement p = local.placement(outer);
    placed.placement[feed] = element ? of_one_turn(p) : p;
    placed.feeds.push_back(feed);
    bindings[inner] = feed;
  };
  for (std::size_t i = 0; i < n_elements; ++i) bind(body.elements[i], loop.input(static_cast<int>(i)), true);
  for (std::size_t i = 0; i < n_states; ++i) bind(body.states[i], loop.input(static_cast<int>(n_elements + i)), false);
  for (std::size_t i = 0; i < body.captures.size(); ++i)
    bind(body.captures[i], loop.input(static_cast<int>(n_elements + n_states + i)), false);

  std::vector<Expr> roots = body.next_states;
  for (std::size_t i = 0; i < n_states; ++i)
    wanted.push_back(local.placement(Expr(loop.handle(), static_cast<int>(i))));
  for (const Expr& output : outputs)
    if (const std::size_t i = static_cast<std::size_t>(output.output()); i >= n_states) {
      const Tap& tap = body.taps[i - n_states];
      roots.push_back(tap.value);
      wanted.push_back(tap.sum ? local.placement(output) : of_one_turn(local.placement(output)));
    }
  placed.roots = concretize(roots, bindings);
  if (request.distributor != nullptr) {
    PlacedGraph graph = request.distributor->place(placed.roots, placed.placement, *request.shares, wanted);
    placed.roots = std::move(graph.roots);
    placed.placement = std::move(graph.placement);
  }
  return placed;
}

}  // namespace

LoopStep lower_loop(const Expr& loop, const std::vector<Expr>& outputs, const LocalView& local,
                    const LowerRequest& request) {
  const LoopBody& body = *loop.attrs<Loop::Attrs>().body;
  const std::size_t n_elements = body.elements.size(), n_states = body.states.size();
  PlacedBody placed = place_body(loop, outputs, local, request);
  const LocalView inner(placed.placement, *request.shares);
  // A next state that is an old state needs memory of its own: the states are overwritten one after the other.
  for (std::size_t i = 0; i < n_states; ++i)
    if (const Expr base = inner.resolve(placed.roots[i]).base; base.is<Placeholder>()) {
      const Placement p = inner.placement(placed.roots[i]);
      placed.roots[i] = apply<Copy>({placed.roots[i]});
      placed.placement[placed.roots[i]] = p;
    }

  LoopStep step;
  step.turns = n_elements > 0 ? loop.input(0).shape()[0] : 0;
  step.reverse = body.reverse;
  step.feeds.resize(placed.feeds.size());
  auto bytes = [&](const Expr& value) { return static_cast<std::size_t>(inner.bytes(value)); };
  for (std::size_t i = 0; i < n_elements; ++i) step.element_bytes.push_back(bytes(placed.feeds[i]));
  for (std::size_t i = 0; i < n_states; ++i) step.state_bytes.push_back(bytes(placed.roots[i]));
  for (std::size_t i = n_states; i < placed.roots.size(); ++i) {
    const bool sum = body.taps[static_cast<std::size_t>(outputs[i].output()) - n_states].sum;
    step.taps.push_back({bytes(placed.roots[i]), sum, outputs[i].dtype()});
  }
  LowerRequest of_body;
  of_body.feeds = placed.feeds;
  of_body.local = true;  // the loop hands over this rank's part of everything
  of_body.outputs = placed.roots;
  of_body.placement = &placed.placement;
  of_body.shares = request.shares;
  of_body.distributor = request.distributor;
  of_body.random_step = request.random_step;
  step.body = lower(of_body);
  return step;
}

}  // namespace syncline
