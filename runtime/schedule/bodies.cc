#include "runtime/schedule/bodies.h"

#include <algorithm>

#include "ops/control/loop.h"
#include "ops/leaf.h"
#include "runtime/collectives.h"
#include "runtime/schedule/fold_products.h"

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

// The first stacked tap that is `value` and stays, or -1.
int stack_of(const Expr& value, const PlacedBody& placed, const LoopStep& step) {
  const std::size_t n_states = placed.roots.size() - step.taps.size();
  for (std::size_t i = 0; i < step.taps.size(); ++i)
    if (!step.taps[i].sum && !step.taps[i].passing && placed.roots[n_states + i] == value) return static_cast<int>(i);
  return -1;
}

// The scratch: the body's arena, then the states and the stacks that pass. Never empty, so that it has an address.
void place_in_scratch(LoopStep& step) {
  constexpr std::size_t kAlignment = 64;
  step.scratch_bytes = std::max(step.body.arena_bytes(), kAlignment);
  auto take = [&](std::size_t bytes) {
    const std::size_t at = (step.scratch_bytes + kAlignment - 1) / kAlignment * kAlignment;
    step.scratch_bytes = at + bytes;
    return at;
  };
  for (LoopStep::State& state : step.states)
    if (state.tap_before < 0 && state.tap_now < 0) state.at = take(state.bytes);
  for (LoopStep::Tap& tap : step.taps)
    if (tap.passing) tap.at = take(static_cast<std::size_t>(step.turns_together) * tap.bytes);
}

int index_of(const std::vector<Expr>& values, const Expr& value) {
  const auto found = std::find(values.begin(), values.end(), value);
  return found == values.end() ? -1 : static_cast<int>(found - values.begin());
}

// `outputs`: the loop's, as `taps` follow the states.
void lower_products(LoopStep& step, const Task& task, const std::vector<Expr>& outputs, const LocalView& local) {
  for (const Expr& value : task.products) {
    LoopStep::Product product{.run = value.op().run,
                              .run_more = value.op().run_more,
                              .attrs = value.node().attrs.get(),
                              .operands = {},
                              .in_meta = {},
                              .out_meta = {local.meta(value)},
                              .in = {}};
    for (const Expr& operand : value.node().inputs) {
      const int output = index_of(outputs, operand);
      const int tap = output < 0 ? -1 : output - static_cast<int>(step.states.size());
      product.operands.push_back(
          {index_of(task.reads, operand), tap, static_cast<std::size_t>(local.bytes(operand) / step.turns)});
      product.in_meta.push_back(local.meta(operand));
    }
    product.in.resize(product.operands.size());
    step.products.push_back(std::move(product));
  }
  if (!task.products.empty()) step.turns_together = turns_together(local.meta(task.products[0].input(0)).shape);
}

// Where a turn puts what a random op of the body draws by.
const std::uint64_t* draw_in_turn(LoopStep& step, const RandomOp& op, const LowerRequest& request) {
  for (const auto& draw : step.draws)
    if (draw->op == &op) return &draw->in_turn;
  step.draws.push_back(std::make_unique<LoopStep::Draw>(LoopStep::Draw{&op, request.random_step(op)}));
  return &step.draws.back()->in_turn;
}

}  // namespace

LoopStep lower_loop(const Task& task, const LocalView& local, const LowerRequest& request) {
  const Expr& loop = task.nodes[0];
  std::vector<Expr> outputs(task.writes.begin(), task.writes.end() - std::ssize(task.products));
  const std::size_t stored = outputs.size();
  outputs.insert(outputs.end(), task.passing.begin(), task.passing.end());
  const LoopBody& body = *loop.attrs<Loop::Attrs>().body;
  const std::size_t n_elements = body.elements.size(), n_states = body.states.size();
  PlacedBody placed = place_body(loop, outputs, local, request);
  const LocalView inner(placed.placement, *request.shares);

  LoopStep step;
  step.turns = local.meta(loop.input(0)).shape[0];
  if (local.placement(loop.input(0)).is_split(0)) step.first_turn = local.slice(loop.input(0)).begin;
  step.reverse = body.reverse;
  step.feeds.resize(placed.feeds.size() + placed.roots.size());
  auto bytes = [&](const Expr& value) { return static_cast<std::size_t>(inner.bytes(value)); };
  for (std::size_t i = 0; i < n_elements; ++i) step.element_bytes.push_back(bytes(placed.feeds[i]));
  for (std::size_t i = n_states; i < placed.roots.size(); ++i) {
    const bool sum = body.taps[static_cast<std::size_t>(outputs[i].output()) - n_states].sum;
    step.taps.push_back({bytes(placed.roots[i]), sum, outputs[i].dtype(), i >= stored, 0});
  }
  LowerRequest of_body;
  of_body.fuse = request.fuse;
  of_body.name = request.name.empty() ? "a loop" : "a loop of " + request.name;
  for (std::size_t i = 0; i < n_states; ++i) {
    const int before = stack_of(placed.feeds[n_elements + i], placed, step);
    const int now = before < 0 ? stack_of(placed.roots[i], placed, step) : -1;
    step.states.push_back({bytes(placed.roots[i]), 0, before, now});
    of_body.in_callers_memory.push_back(now < 0);
  }
  for (const LoopStep::Tap& tap : step.taps) of_body.in_callers_memory.push_back(!tap.sum);
  of_body.feeds = placed.feeds;
  of_body.local = true;  // the loop hands over this rank's part of everything
  of_body.outputs = placed.roots;
  of_body.placement = &placed.placement;
  of_body.shares = request.shares;
  of_body.distributor = request.distributor;
  of_body.draw_in_turn = [&](const RandomOp& op) { return draw_in_turn(step, op, request); };
  step.body = lower(of_body);
  lower_products(step, task, outputs, local);
  place_in_scratch(step);
  return step;
}

}  // namespace syncline
