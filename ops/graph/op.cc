#include "ops/graph/op.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "ops/graph/value_map.h"

namespace syncline {
namespace {

std::vector<const OpDef*>& registry() {
  static std::vector<const OpDef*> ops;
  return ops;
}

bool by_name(const OpDef* a, const OpDef* b) { return a->name < b->name; }

}  // namespace

std::ostream& operator<<(std::ostream& out, const Meta& meta) { return out << meta.dtype << meta.shape; }

Node::~Node() {
  std::vector<Expr> pending = std::move(inputs);
  while (!pending.empty()) {
    Expr last = std::move(pending.back());
    pending.pop_back();
    if (!last || last.handle().use_count() > 1) continue;
    // This is the only reference, so no other owner sees the change. Moving the inputs out avoids deep recursion.
    auto& orphan = const_cast<Node&>(last.node());
    for (Expr& input : orphan.inputs) pending.push_back(std::move(input));
    orphan.inputs.clear();
  }
}

std::vector<std::shared_ptr<const Node>> nodes_under(std::span<const Expr> roots) {
  std::vector<std::pair<std::uint64_t, const Expr*>> found;  // ids, to sort without a look at the nodes
  ValueSet seen;
  auto visit = [&](const Expr& e) {
    if (e && seen.insert(e.node())) found.emplace_back(e.node().id, &e);
  };
  for (const Expr& root : roots) visit(root);
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const Expr& input : found[i].second->node().inputs) visit(input);
  std::sort(found.begin(), found.end());
  std::vector<std::shared_ptr<const Node>> nodes;
  nodes.reserve(found.size());
  for (const auto& [id, value] : found) nodes.push_back(value->handle());
  return nodes;
}

void Expr::throw_empty() {
  fail<ValueError>("an expression is empty; it may be the gradient of an expression that has none");
}

std::shared_ptr<const Node> make_node(const OpDef& op, std::shared_ptr<const void> attrs, std::vector<Expr> inputs,
                                      std::string name) {
  static std::atomic<std::uint64_t> next_id{1};
  std::vector<Meta> metas;
  metas.reserve(inputs.size());
  for (const Expr& input : inputs) {
    if (!input) fail<ValueError>(op.name, ": an input is empty; it may be the gradient of an expression that has none");
    if (input.op().sparse)
      fail<ValueError>(op.name, ": does not accept the sparse tensor '", input.name(), "' of shape ", input.shape(),
                       "; give to_dense(x) instead");
    metas.push_back(input.meta());
  }
  auto node = std::make_shared<Node>();
  node->outputs = op.infer(attrs.get(), metas);
  for (const Meta& output : node->outputs) check_size(op.name, output.shape);
  node->id = next_id.fetch_add(1, std::memory_order_relaxed);
  node->op = &op;
  node->attrs = std::move(attrs);
  node->inputs = std::move(inputs);
  node->name = std::move(name);
  return node;
}

std::span<const OpDef* const> registered_ops() { return registry(); }

const OpDef* find_op(std::string_view name) {
  const auto& ops = registry();
  const auto it = std::lower_bound(ops.begin(), ops.end(), name,
                                   [](const OpDef* op, std::string_view wanted) { return op->name < wanted; });
  return it != ops.end() && (*it)->name == name ? *it : nullptr;
}

bool register_op(const OpDef& op) {
  auto& ops = registry();
  if (find_op(op.name) != nullptr) fail<InternalError>("op ", op.name, " is registered twice");
  ops.insert(std::upper_bound(ops.begin(), ops.end(), &op, by_name), &op);
  return true;
}

}  // namespace syncline
