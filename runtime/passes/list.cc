#include <set>

#include "ops/control/loop.h"
#include "ops/graph/leaf.h"
#include "runtime/passes/passes.h"
#include "runtime/placement/collectives.h"

namespace syncline {
namespace {

// Copies a root that is the old value of a variable updated in the same step.
std::vector<Expr> roots_of(const CompileRequest& request, const LocalView& local) {
  std::set<const VariableState*> updated;
  for (const Update& u : request.updates) updated.insert(&u.target.state());
  std::vector<Expr> roots;
  const auto add = [&](const Expr& root) {
    const Expr base = local.resolve(root).base;
    const bool stale = base.is<VariableLeaf>() && updated.contains(base.attrs<VariableLeaf::Attrs>().state.get());
    roots.push_back(stale ? apply<Copy>({root}) : root);
  };
  for (const Expr& output : request.outputs) add(output);
  for (const Update& u : request.updates) add(u.value);
  return roots;
}

Task::Kind kind_of(const Node& node) {
  if (node.op == &def_of<AllReduce>()) return Task::kAllReduce;
  if (node.op == &def_of<ReduceScatter>()) return Task::kReduceScatter;
  if (node.op == &def_of<AllGather>()) return Task::kAllGather;
  if (node.op == &def_of<Loop>()) return Task::kLoop;
  return node.op->block != nullptr ? Task::kFused : Task::kKernel;
}

bool may_throw(const Node& node) {
  if (node.op->may_throw == nullptr) return false;
  std::vector<Meta> in;
  for (const Expr& input : node.inputs) in.push_back(input.meta());
  return node.op->may_throw(node.attrs.get(), in);
}

}  // namespace

CompileRequest place(CompileRequest request) {
  if (request.placed || request.strategy == nullptr) return request;
  std::vector<Expr> roots = request.outputs;
  for (const Update& u : request.updates) roots.push_back(u.value);
  PlacedGraph graph = request.strategy->place(roots, request.placement, *request.shares, request.wanted);
  for (std::size_t i = 0; i < request.outputs.size(); ++i) request.outputs[i] = graph.roots[i];
  for (std::size_t i = 0; i < request.updates.size(); ++i)
    request.updates[i].value = graph.roots[request.outputs.size() + i];
  request.placement = std::move(graph.placement);
  request.placed = true;
  return request;
}

Schedule list_tasks(CompileRequest request) {
  Schedule schedule{.request = std::move(request)};
  const LocalView local = schedule.local();
  schedule.roots = roots_of(schedule.request, local);
  const GuardedNodes guarded(schedule.roots);
  ValueSet is_read(schedule.roots.begin(), schedule.roots.end());
  for (const auto& node : guarded.in_order()) is_read.insert(node->inputs.begin(), node->inputs.end());
  schedule.tasks.reserve(guarded.in_order().size());
  for (const auto& node : guarded.in_order()) {
    const Expr value(node);
    if (node->op->leaf || local.is_view(value)) continue;
    Task task{.kind = kind_of(*node), .nodes = {value}, .reads = node->inputs};
    const std::size_t states = task.kind == Task::kLoop ? value.attrs<Loop::Attrs>().body->states.size() : 0;
    for (std::size_t i = 0; i < node->outputs.size(); ++i) {
      // A loop omits unread residuals but always writes its states. Other ops write all outputs.
      const Expr output(node, static_cast<int>(i));
      if (task.kind != Task::kLoop || i < states || is_read.contains(output)) task.writes.push_back(output);
    }
    if (task.starts_transfer()) task.transfer = schedule.transfers++;
    task.guards = guarded.of(*node);
    task.may_throw = may_throw(*node);
    schedule.tasks.push_back(std::move(task));
  }
  schedule.nodes = guarded.in_order();
  return schedule;
}

}  // namespace syncline
