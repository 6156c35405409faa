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

std::vector<Expr> substitute(std::span<const Expr> roots, const Replacements& replacements) {
  std::uint64_t first = UINT64_MAX;
  for (const auto& [old, fresh] : replacements) first = std::min(first, old.node().id);
  std::unordered_map<const Node*, std::shared_ptr<const Node>> rebuilt;
  auto now = [&](const Expr& old) {
    if (!old) return old;
    if (const auto found = replacements.find(old); found != replacements.end()) return found->second;
    const auto found = rebuilt.find(&old.node());
    return found == rebuilt.end() ? old : Expr(found->second, old.output());
  };
  for (const auto& node : nodes_since(first, roots, [&](const Expr& e) { return replacements.contains(e); })) {
    std::vector<Expr> inputs;
    for (const Expr& input : node->inputs) inputs.push_back(now(input));
    if (inputs != node->inputs) rebuilt[node.get()] = make_node(*node->op, node->attrs, std::move(inputs), node->name);
  }
  std::vector<Expr> result;
  for (const Expr& root : roots) result.push_back(now(root));
  return result;
}

}  // namespace syncline
