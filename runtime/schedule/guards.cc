#include "runtime/schedule/guards.h"

#include <algorithm>

#include "ops/control/branch.h"

namespace syncline {
namespace {

Guards with(Guards guards, const Guard& guard) {
  if (std::find(guards.begin(), guards.end(), guard) == guards.end()) guards.push_back(guard);
  return guards;
}

// A value with two uses has the guards that both uses share.
Guards common(const Guards& a, const Guards& b) {
  Guards both;
  for (const Guard& guard : a)
    if (std::find(b.begin(), b.end(), guard) != b.end()) both.push_back(guard);
  return both;
}

}  // namespace

GuardedNodes::GuardedNodes(const std::vector<Expr>& roots) : nodes_(nodes_under(roots)) {
  const auto is_choice = [](const auto& node) { return node->op == &def_of<Choose>(); };
  if (std::none_of(nodes_.begin(), nodes_.end(), is_choice)) return;
  find_guards(roots);
  order();
}

const Guards& GuardedNodes::of(const Node& node) const {
  static const Guards none;
  const auto found = guards_.find(&node);
  return found == guards_.end() ? none : found->second;
}

void GuardedNodes::find_guards(const std::vector<Expr>& roots) {
  std::unordered_map<const Node*, Guards> found;
  for (const Expr& root : roots) found[&root.node()] = {};
  auto use = [&](const Node& node, const Guards& guards) {
    const auto [it, first] = found.try_emplace(&node, guards);
    if (!first) it->second = common(it->second, guards);
  };
  for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it) {
    const Node& node = **it;
    const Guards guards = found.at(&node);
    const bool choice = node.op == &def_of<Choose>();
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      use(node.inputs[i].node(), choice && i < 2 ? with(guards, {node.inputs[2], i == 0}) : guards);
  }
  for (auto& [node, guards] : found)
    if (!guards.empty() && !node->op->leaf) guards_[node] = std::move(guards);
}

// The order exists because a condition never depends on a value that it guards.
void GuardedNodes::order() {
  std::vector<std::shared_ptr<const Node>> ordered;
  std::unordered_map<const Node*, std::size_t> place;
  std::vector<std::shared_ptr<const Node>> open;
  const auto first_missing = [&](const Node& node) -> std::shared_ptr<const Node> {
    for (const Expr& input : node.inputs)
      if (!place.contains(&input.node())) return input.handle();
    for (const Guard& guard : of(node))
      if (!place.contains(&guard.condition.node())) return guard.condition.handle();
    return nullptr;
  };
  for (const auto& node : nodes_) {
    if (place.contains(node.get())) continue;
    open.push_back(node);
    while (!open.empty()) {
      const auto now = open.back();
      if (auto missing = first_missing(*now)) {
        open.push_back(std::move(missing));
        continue;
      }
      open.pop_back();
      if (place.emplace(now.get(), ordered.size()).second) ordered.push_back(now);
    }
  }
  nodes_ = std::move(ordered);
  for (auto& [node, guards] : guards_)
    std::sort(guards.begin(), guards.end(), [&](const Guard& a, const Guard& b) {
      return place.at(&a.condition.node()) < place.at(&b.condition.node());
    });
}

}  // namespace syncline
