// Replaces values in a graph. Used to build and differentiate loops, and by plans.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "ops/graph/value_map.h"

namespace syncline {

using Replacements = std::unordered_map<Expr, Expr, ExprHash>;

// Returns the roots with every use of a key replaced by its value. Nodes that depend on no key are reused; an empty
// root remains empty.
std::vector<Expr> substitute(std::span<const Expr> roots, const Replacements& replacements);

// The values of a graph that is rewritten node by node, inputs before users.
class Rewritten {
 public:
  // The value in the new graph; `old` if it has not changed, or is empty.
  Expr now(const Expr& old) const { return old ? values_.value_or(old, old) : old; }
  std::vector<Expr> now(std::span<const Expr> old) const;
  void set(const Expr& old, const Expr& fresh) { values_[old] = fresh; }
  // Makes the node anew if its inputs have changed, or the attributes, and returns it. Keeps outputs that are set.
  std::shared_ptr<const Node> rebuild(const std::shared_ptr<const Node>& node,
                                      const std::shared_ptr<const void>& attrs);
  std::shared_ptr<const Node> rebuild(const std::shared_ptr<const Node>& node) { return rebuild(node, node->attrs); }

 private:
  ValueMap<Expr> values_;
};

// Throws InternalError if a rewrite changed the meta of a value: buffers and kernels rely on it.
void check_rewrite(const Expr& before, const Expr& after);

// Returns the nodes under `roots` with an id of at least `first`, inputs before users. Does not search below a value
// for which `stop` returns true. A user is always newer than its inputs, so this finds every node that depends on
// `first` without a walk through the whole graph.
std::vector<std::shared_ptr<const Node>> nodes_since(std::uint64_t first, std::span<const Expr> roots,
                                                     const std::function<bool(const Expr&)>& stop);

}  // namespace syncline
