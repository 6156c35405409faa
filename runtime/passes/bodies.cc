#include <algorithm>

#include "base/alignment.h"
#include "ops/control/loop.h"
#include "ops/graph/leaf.h"
#include "runtime/passes/compile.h"
#include "runtime/passes/passes.h"
#include "runtime/placement/collectives.h"

namespace syncline {
namespace {

// The placement of one iteration of a stack. If the stack is split along its first axis (the iterations), a rank has
// whole iterations.
Placement of_one_iteration(Placement whole) {
  if (!whole.is_split()) return whole;
  return whole.axis == 0 ? Placement::replicated() : Placement::split(whole.axis - 1);
}

// The body as a graph, for the loop's stored `outputs`. Its feeds are this rank's parts of one iteration's elements, of
// the states and of the captures.
CompileRequest request_of_body(const Expr& loop, const std::vector<Expr>& outputs, const Schedule& schedule) {
  const LoopBody& body = *loop.attrs<Loop::Attrs>().body;
  const LocalView local = schedule.local();
  const CompileRequest& outer = schedule.request;
  const std::size_t n_states = body.states.size();
  CompileRequest request{.name = outer.name.empty() ? "a loop" : "a loop of " + outer.name,
                         .feeds = {},
                         .local = true,
                         .outputs = {},
                         .shares = outer.shares,
                         .strategy = outer.strategy,
                         .fuse = outer.fuse};
  for (const auto* leaves : {&body.elements, &body.states, &body.captures})
    request.feeds.insert(request.feeds.end(), leaves->begin(), leaves->end());
  for (std::size_t i = 0; i < request.feeds.size(); ++i) {
    const Placement p = local.placement(loop.input(static_cast<int>(i)));
    if (!p.is_replicated()) request.placement[request.feeds[i]] = i < body.elements.size() ? of_one_iteration(p) : p;
  }
  const bool shared_iterations = local.placement(loop.input(0)).is_split(0);
  for (const Expr& output : outputs) {
    const auto i = static_cast<std::size_t>(output.output());
    const Placement p = local.placement(output);
    request.outputs.push_back(i < n_states ? body.next_states[i] : body.residuals[i - n_states].value);
    const bool whole = i < n_states || (body.residuals[i - n_states].sum && !shared_iterations);
    request.wanted.push_back(whole                              ? p
                             : body.residuals[i - n_states].sum ? Placement::replicated()
                                                                : of_one_iteration(p));
  }
  return place(std::move(request));
}

// The layers of the feeds, and for the loop that of its first operand with a layer.
Layers layers_of_body(const Task& task, const CompileRequest& body, const Layers& outer) {
  Layers layers{.loop = outer.loop, .feeds = {}};
  const std::vector<Expr>& inputs = task.nodes[0].node().inputs;
  for (std::size_t i = body.feeds.size(); i-- > 0;)
    if (std::string layer = layer_of(inputs[i], outer); !layer.empty()) {
      layers.feeds[body.feeds[i]] = layer;
      layers.loop = std::move(layer);
    }
  return layers;
}

// The first residual that stacks `value` and is not passing, or -1.
int stack_of(const Expr& value, const CompileRequest& body, const LoopStep& step) {
  const std::size_t n_states = body.outputs.size() - step.residuals.size();
  for (std::size_t i = 0; i < step.residuals.size(); ++i)
    if (!step.residuals[i].sum && !step.residuals[i].passing && body.outputs[n_states + i] == value)
      return static_cast<int>(i);
  return -1;
}

// Lays out the scratch: the body's arena, whose memory the products use between iterations, then states and passing
// stacks. Never empty, so that it has an address. `product_bytes`: of the products' scratch.
void place_in_scratch(LoopStep& step, std::size_t product_bytes) {
  step.scratch_bytes = std::max({step.body.arena_bytes(), product_bytes, kAlignment});
  auto take = [&](std::size_t bytes) {
    const std::size_t at = aligned(step.scratch_bytes);
    step.scratch_bytes = at + bytes;
    return at;
  };
  for (LoopStep::State& state : step.states)
    if (state.residual_before < 0 && state.residual_now < 0) state.at = take(state.bytes);
  for (LoopStep::Residual& residual : step.residuals)
    if (residual.passing) residual.at = take(static_cast<std::size_t>(step.iterations_together) * residual.bytes);
}

int index_of(const std::vector<Expr>& values, const Expr& value) {
  const auto found = std::find(values.begin(), values.end(), value);
  return found == values.end() ? -1 : static_cast<int>(found - values.begin());
}

// The bytes that the product's op needs for a whole group of iterations or for the last group.
std::size_t scratch_bytes_of(LoopStep::Product& product, const OpDef& op, const LoopStep& step) {
  std::size_t bytes = 0;
  if (op.scratch == nullptr) return bytes;
  for (const std::int64_t count :
       {std::min(step.iterations, step.iterations_together), step.iterations % step.iterations_together}) {
    for (Meta& meta : product.in_meta) meta.shape[0] = count;
    bytes = std::max(bytes, op.scratch(product.attrs, product.in_meta, product.out_meta, {}));
  }
  return bytes;
}

// Returns the bytes of the largest scratch of a product. `outputs`: the loop's outputs, states first, then in the order
// of step.residuals.
std::size_t lower_products(LoopStep& step, const Task& task, const std::vector<Expr>& outputs, const LocalView& local) {
  if (task.products.empty()) return 0;
  step.iterations_together = iterations_together(local.meta(task.products[0].input(0)).shape);
  std::size_t scratch_bytes = 0;
  for (const Expr& value : task.products) {
    LoopStep::Product product{.run = value.op().run,
                              .accumulate = value.op().accumulate,
                              .attrs = value.node().attrs.get(),
                              .operands = {},
                              .in_meta = {},
                              .out_meta = {local.meta(value)},
                              .in = {}};
    for (const Expr& operand : value.node().inputs) {
      const int output = index_of(outputs, operand);
      const int residual = output < 0 ? -1 : output - static_cast<int>(step.states.size());
      product.operands.push_back(
          {index_of(task.reads, operand), residual, static_cast<std::size_t>(local.bytes(operand) / step.iterations)});
      product.in_meta.push_back(local.meta(operand));
    }
    scratch_bytes = std::max(scratch_bytes, scratch_bytes_of(product, value.op(), step));
    product.in.resize(product.operands.size());
    step.products.push_back(std::move(product));
  }
  return scratch_bytes;
}

// The address of the random step of an op in the body.
const std::uint64_t* draw_in_iteration(LoopStep& step, const RandomOp& op, const CompileRequest& request) {
  for (const auto& draw : step.draws)
    if (draw->op == &op) return &draw->in_iteration;
  step.draws.push_back(std::make_unique<LoopStep::Draw>(LoopStep::Draw{&op, request.random_runs(op)}));
  return &step.draws.back()->in_iteration;
}

// Sets the sizes of elements, states and residuals, and the body outputs that are computed in the loop's memory.
void place_outputs(LoopStep& step, CompileRequest& request, const Task& task, const std::vector<Expr>& outputs) {
  const LoopBody& body = *task.nodes[0].attrs<Loop::Attrs>().body;
  const LocalView inner(request.placement, *request.shares);
  const std::size_t n_elements = body.elements.size(), n_states = body.states.size();
  const std::size_t stored = outputs.size() - task.passing.size();
  auto bytes = [&](const Expr& value) { return static_cast<std::size_t>(inner.bytes(value)); };
  for (std::size_t i = 0; i < n_elements; ++i) step.element_bytes.push_back(bytes(request.feeds[i]));
  for (std::size_t i = n_states; i < request.outputs.size(); ++i) {
    const bool sum = body.residuals[static_cast<std::size_t>(outputs[i].output()) - n_states].sum;
    step.residuals.push_back({bytes(request.outputs[i]), sum, outputs[i].dtype(), i >= stored, 0});
  }
  for (std::size_t i = 0; i < n_states; ++i) {
    const int before = stack_of(request.feeds[n_elements + i], request, step);
    const int now = before < 0 ? stack_of(request.outputs[i], request, step) : -1;
    step.states.push_back({bytes(request.outputs[i]), 0, before, now});
    request.in_callers_memory.push_back(now < 0);
  }
  for (const LoopStep::Residual& residual : step.residuals) request.in_callers_memory.push_back(!residual.sum);
}

LoopStep compile_loop(const Task& task, const Schedule& schedule) {
  const Expr& loop = task.nodes[0];
  const LocalView local = schedule.local();
  std::vector<Expr> outputs(task.writes.begin(), task.writes.end() - std::ssize(task.products));
  outputs.insert(outputs.end(), task.passing.begin(), task.passing.end());
  CompileRequest request = request_of_body(loop, outputs, schedule);
  LoopStep step;
  step.iterations = local.meta(loop.input(0)).shape[0];
  if (local.placement(loop.input(0)).is_split(0)) step.first_iteration = local.slice(loop.input(0)).begin;
  step.reverse = loop.attrs<Loop::Attrs>().body->reverse;
  step.feeds.resize(request.feeds.size() + request.outputs.size());
  place_outputs(step, request, task, outputs);
  request.layers = layers_of_body(task, request, schedule.request.layers);
  request.draw_in_iteration = [&](const RandomOp& op) { return draw_in_iteration(step, op, schedule.request); };
  step.body = compile(std::move(request));
  place_in_scratch(step, lower_products(step, task, outputs, local));
  return step;
}

}  // namespace

// Runs before commit, which needs to know whether a body has transfers or may reject a value.
Schedule compile_bodies(Schedule schedule) {
  for (Task& task : schedule.tasks) {
    if (task.kind != Task::kLoop) continue;
    task.body = static_cast<int>(schedule.bodies.size());
    schedule.bodies.push_back(compile_loop(task, schedule));
    task.has_transfers = schedule.bodies.back().body.has_transfers();
    task.may_throw = schedule.bodies.back().body.may_throw();
  }
  return schedule;
}

}  // namespace syncline
