#include "ops/control/body.h"

#include <algorithm>
#include <unordered_set>

#include "ops/control/branch.h"
#include "ops/control/loop.h"
#include "ops/graph/fill.h"
#include "ops/graph/leaf.h"
#include "syncline/backend/random.h"

namespace syncline {
namespace {

// The roots of the bodies of a node; empty if it has no body.
std::vector<Expr> inner_roots(const Node& node) {
  if (node.op == &def_of<Loop>()) return static_cast<const Loop::Attrs*>(node.attrs.get())->body->roots();
  if (node.op == &def_of<Branch>()) return static_cast<const Branch::Attrs*>(node.attrs.get())->bodies->roots();
  return {};
}

template <class Predicate>
bool any_within(const Node& node, const Predicate& predicate) {
  if (predicate(node)) return true;
  const auto inner = nodes_under(inner_roots(node));
  return std::any_of(inner.begin(), inner.end(), [&](const auto& n) { return any_within(*n, predicate); });
}

}  // namespace

BodyMetas infer_under(std::string_view op, std::span<const Expr> roots, std::span<const Expr> leaves,
                      std::span<const Meta> metas) {
  BodyMetas known;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (metas[i].dtype != leaves[i].dtype())
      fail<DTypeError>(op, ": input ", i, " is ", metas[i].dtype, ", but the body takes ", leaves[i].dtype());
    known[&leaves[i].node()] = {metas[i]};
  }
  for (const auto& node : nodes_under(roots)) {
    if (known.contains(node.get())) continue;
    if (node->inputs.empty()) {
      known[node.get()] = node->outputs;
      continue;
    }
    std::vector<Meta> of_inputs;
    for (const Expr& input : node->inputs) of_inputs.push_back(meta_of(known, input));
    known[node.get()] = node->op->infer(node->attrs.get(), of_inputs);
  }
  return known;
}

void name_leaves(BodyNames& names, std::span<const Expr> leaves, std::string_view prefix) {
  for (std::size_t i = 0; i < leaves.size(); ++i) names[&leaves[i].node()] = join_text(prefix, i);
}

std::string name_of(const BodyNames& names, const Expr& e) {
  return e.output() == 0 ? names.at(&e.node()) : join_text(names.at(&e.node()), '.', e.output());
}

std::string describe_nodes(BodyNames& names, std::span<const Expr> roots) {
  std::string text;
  int count = 0;
  for (const auto& node : nodes_under(roots)) {
    if (names.contains(node.get())) continue;
    const auto& own = names[node.get()] = join_text('%', count++);
    text += join_text(' ', own, '=', node->op->name, '(', node->op->print(node->attrs.get()), ')');
    for (const Expr& input : node->inputs) text += ' ' + name_of(names, input);
    text += ';';
  }
  return text;
}

bool is_repeatable(const Node& node) {
  return !any_within(node, [](const Node& n) { return random_op_of(n) != nullptr || n.op->effect; });
}

bool has_effect(std::span<const Expr> roots) {
  const auto nodes = nodes_under(roots);
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const auto& node) { return any_within(*node, [](const Node& n) { return n.op->effect; }); });
}

std::vector<RandomOp*> random_ops_under(std::span<const Expr> roots) {
  std::vector<RandomOp*> ops;
  std::vector<const Node*> walk;
  std::unordered_set<const Node*> seen;
  const auto visit = [&](const Expr& e) {
    if (e && seen.insert(&e.node()).second) walk.push_back(&e.node());
  };
  for (const Expr& root : roots) visit(root);
  for (std::size_t i = 0; i < walk.size(); ++i) {
    any_within(*walk[i], [&](const Node& n) {
      RandomOp* op = random_op_of(n);
      if (op != nullptr && std::ranges::find(ops, op) == ops.end()) ops.push_back(op);
      return false;
    });
    for (const Expr& input : walk[i]->inputs) visit(input);
  }
  return ops;
}

bool is_own_number(const Expr& e, std::uint64_t first) {
  return is_constant(e) && (e.node().id >= first || !is_floating(e.dtype()));
}

Expr stand_in(const Expr& value) { return apply<Placeholder>({}, {value.dtype(), value.shape(), 0}, value.name()); }

}  // namespace syncline
