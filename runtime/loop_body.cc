#include "runtime/loop_body.h"

#include "ops/control/loop.h"
#include "ops/leaf.h"
#include "runtime/collectives.h"

namespace syncline {
namespace {

// The placement of one turn's part of a value that is stacked along a new first axis. If the turns themselves are
// shared out, a rank has all of a turn.
Placement of_one_turn(Placement whole) {
  if (!whole.is_split()) return whole;
  return whole.axis == 0 ? Placement::replicated() : Placement::split(whole.axis - 1);
}

// A body as this plan needs it: the taps that are stored, and placements.
struct PlacedBody {
  std::vector<Expr> feeds;
  std::vector<Expr> roots;
  PlacementMap placement;
};

PlacedBody place_body(const Expr& loop, const std::vector<Expr>& outputs, const LocalView& local,
                      const LowerRequest& request) {
  const LoopBody& body = *loop.attrs<Loop::Attrs>().body;
  const std::size_t n_states = body.states.size();
  PlacedBody placed;
  for (const auto* leaves : {&body.elements, &body.states, &body.captures})
    placed.feeds.insert(placed.feeds.end(), leaves->begin(), leaves->end());
  for (std::size_t i = 0; i < placed.feeds.size(); ++i) {
    const Placement p = local.placement(loop.input(static_cast<int>(i)));
    if (!p.is_replicated()) placed.placement[placed.feeds[i]] = i < body.elements.size() ? of_one_turn(p) : p;
  }
  const bool shared_turns = local.placement(loop.input(0)).is_split(0);
  std::vector<Placement> wanted;
  for (const Expr& output : outputs) {
    const auto i = static_cast<std::size_t>(output.output());
    const Placement p = local.placement(output);
    placed.roots.push_back(i < n_states ? body.next_states[i] : body.taps[i - n_states].value);
    const bool whole = i < n_states || (body.taps[i - n_states].sum && !shared_turns);
    wanted.push_back(whole ? p : body.taps[i - n_states].sum ? Placement::replicated() : of_one_turn(p));
  }
  if (request.distributor != nullptr) {
    PlacedGraph graph = request.distributor->place(placed.roots, placed.placement, *request.shares, wanted);
    placed.roots = std::move(graph.roots);
    placed.placement = std::move(graph.placement);
  }
  return placed;
}

// States are written in place one after the other when a turn is over, so a next state that is an old state needs
// memory of its own.
void copy_kept_states(PlacedBody& placed, std::size_t n_states, const LocalView& inner) {
  for (std::size_t i = 0; i < n_states; ++i) {
    if (!inner.resolve(placed.roots[i]).base.is<Placeholder>()) continue;
    const Placement p = inner.placement(placed.roots[i]);
    placed.roots[i] = apply<Copy>({placed.roots[i]});
    placed.placement[placed.roots[i]] = p;
  }
}

}  // namespace

LoopStep lower_loop(const Expr& loop, const std::vector<Expr>& outputs, const LocalView& local,
                    const LowerRequest& request) {
  const LoopBody& body = *loop.attrs<Loop::Attrs>().body;
  const std::size_t n_elements = body.elements.size(), n_states = body.states.size();
  PlacedBody placed = place_body(loop, outputs, local, request);
  const LocalView inner(placed.placement, *request.shares);
  copy_kept_states(placed, n_states, inner);

  LoopStep step;
  step.turns = local.meta(loop.input(0)).shape[0];
  if (local.placement(loop.input(0)).is_split(0)) step.first_turn = local.slice(loop.input(0)).begin;
  step.reverse = body.reverse;
  step.feeds.resize(placed.feeds.size() + placed.roots.size());
  step.random_step = std::make_unique<std::uint64_t>(0);
  auto bytes = [&](const Expr& value) { return static_cast<std::size_t>(inner.bytes(value)); };
  for (std::size_t i = 0; i < n_elements; ++i) step.element_bytes.push_back(bytes(placed.feeds[i]));
  for (std::size_t i = 0; i < n_states; ++i) step.state_bytes.push_back(bytes(placed.roots[i]));
  for (std::size_t i = n_states; i < placed.roots.size(); ++i) {
    const bool sum = body.taps[static_cast<std::size_t>(outputs[i].output()) - n_states].sum;
    step.taps.push_back({bytes(placed.roots[i]), sum, outputs[i].dtype()});
  }
  LowerRequest of_body;
  of_body.name = request.name.empty() ? "a loop" : "a loop of " + request.name;
  of_body.in_callers_memory.assign(n_states, false);
  for (const LoopStep::Tap& tap : step.taps) of_body.in_callers_memory.push_back(!tap.sum);
  of_body.feeds = placed.feeds;
  of_body.local = true;  // the loop hands over this rank's part of everything
  of_body.outputs = placed.roots;
  of_body.placement = &placed.placement;
  of_body.shares = request.shares;
  of_body.distributor = request.distributor;
  of_body.random_step = step.random_step.get();
  step.body = lower(of_body);
  return step;
}

}  // namespace syncline
