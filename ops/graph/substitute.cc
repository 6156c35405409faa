#include "ops/graph/substitute.h"

#include <algorithm>
#include <unordered_set>

#include "ops/graph/op.h"

namespace syncline {

std::vector<std::shared_ptr<const Node>> nodes_since(std::uint64_t first, std::span<const Expr> roots,
                                                     const std::function<bool(const Expr&)>& stop) {
  std::vector<std::shared_ptr<const Node>> found;
  std::unordered_set<const Node*> seen;
  auto visit = [&](const Expr& e) {
    if (e && e.node().id >= first && !stop(e) && seen.insert(&e.node()).second) found.push_back(e.handle());
  };
  for (const Expr& root : roots) visit(root);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto node = found[i];  // `found` grows below
    for (const Expr& input : node->inputs) visit(input);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a->id < b->id; });
  return found;
}

void check_rewrite(const Expr& before, const Expr& after) {
  bool same = before.dtype() == after.dtype() && before.ndim() == after.ndim();
  for (int axis = 0; same && axis < before.ndim(); ++axis) {
    const std::int64_t old = before.shape()[axis], now = after.shape()[axis];
    same = old == now || old < 0 || now < 0;
  }
  if (!same)
    fail<InternalError>("plan: ", before.op().name, " of ", before.meta(), " was rewritten as ", after.op().name,
                        " of ", after.meta(), "; please report this");
}

std::vector<Expr> Rewritten::now(std::span<const Expr> old) const {
  std::vector<Expr> fresh;
  for (const Expr& e : old) fresh.push_back(now(e));
  return fresh;
}

std::shared_ptr<const Node> Rewritten::rebuild(const std::shared_ptr<const Node>& node,
                                               const std::shared_ptr<const void>& attrs) {
  const auto has_changed = [&](const Expr& input) {
    const Expr* const found = input ? values_.find(input) : nullptr;
    return found != nullptr && !(*found == input);
  };
  if (attrs == node->attrs && std::ranges::none_of(node->inputs, has_changed)) return node;
  const auto fresh = make_node(*node->op, attrs, now(node->inputs), node->name);
  for (int i = 0; i < static_cast<int>(node->outputs.size()); ++i) values_.try_emplace(Expr(node, i), fresh, i);
  return fresh;
}

std::vector<Expr> substitute(std::span<const Expr> roots, const Replacements& replacements) {
  std::uint64_t first = UINT64_MAX;
  Rewritten graph;
  for (const auto& [old, fresh] : replacements) {
    first = std::min(first, old.node().id);
    graph.set(old, fresh);
  }
  for (const auto& node : nodes_since(first, roots, [&](const Expr& e) { return replacements.contains(e); }))
    graph.rebuild(node);
  return graph.now(roots);
}

}  // namespace syncline
