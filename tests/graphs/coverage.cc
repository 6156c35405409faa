#include <algorithm>
#include <set>
#include <unordered_set>

#include "ops/control/branch.h"
#include "ops/control/loop.h"
#include "ops/graph/leaf.h"
#include "ops/graph/op.h"
#include "syncline/backend/random.h"
#include "tests/graphs/ways.h"

namespace syncline::graphs {
Expr pole_input(const Node& node) {
  const std::string_view name = node.op->name;
  if (name == "sqrt" || name == "log" || name == "pow") return node.inputs[0];
  return name == "div" || name == "floormod" ? node.inputs[1] : Expr{};
}

bool have_poles_in_bodies(std::span<const Expr> roots) {
  for (const auto& node : nodes_under(roots)) {
    const std::vector<Expr> body = body_of(Expr(node));
    const auto inner = nodes_under(body);
    if (std::any_of(inner.begin(), inner.end(), [](const auto& n) { return bool(pole_input(*n)); })) return true;
    if (have_poles_in_bodies(body)) return true;
  }
  return false;
}

std::vector<Expr> body_of(const Expr& node) {
  if (node.is<Loop>()) return node.attrs<Loop::Attrs>().body->roots();
  if (node.is<Branch>()) return node.attrs<Branch::Attrs>().bodies->roots();
  return {};
}

void set_runs(const std::vector<Expr>& roots, std::uint64_t run) {
  for (const auto& node : nodes_under(roots)) {
    if (RandomOp* random_op = random_op_of(*node)) random_op->runs = run;
    set_runs(body_of(Expr(node)), run);
  }
}

namespace {

using Names = std::set<std::string_view>;

void add_names(const std::vector<Expr>& roots, Names& names) {
  for (const auto& node : nodes_under(roots)) {
    names.insert(node->op->name);
    add_names(body_of(Expr(node)), names);
  }
}

bool is_floating_node(const Node& node) {
  return std::any_of(node.outputs.begin(), node.outputs.end(), [](const Meta& m) { return is_floating(m.dtype); });
}

// Adds the names of the ops through which the gradient of `roots` reaches a floating placeholder, also within bodies.
// Integers have no gradients, so none passes through them.
void add_differentiated(const std::vector<Expr>& roots, Names& names) {
  std::unordered_set<const Node*> depends;
  for (const auto& node : nodes_under(roots)) {
    if (!is_floating_node(*node)) continue;
    if (Expr(node).is<Placeholder>()) depends.insert(node.get());
    const bool inside = std::any_of(node->inputs.begin(), node->inputs.end(),
                                    [&](const Expr& input) { return depends.contains(&input.node()); });
    if (!inside || node->op->grad == nullptr) continue;
    depends.insert(node.get());
    names.insert(node->op->name);
    add_differentiated(body_of(Expr(node)), names);
  }
}

}  // namespace

void add_coverage(const Graph& graph, Coverage& coverage) {
  Names computed, differentiated;
  add_names(graph.outputs, computed);
  if (graph.loss) add_differentiated({graph.loss}, differentiated);
  for (const std::string_view name : computed) ++coverage.graphs[std::string(name)].first;
  for (const std::string_view name : differentiated) ++coverage.graphs[std::string(name)].second;
}

}  // namespace syncline::graphs
