// Replaces values in a graph. Used to build and differentiate loops, and by plans.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "syncline/expr.h"

namespace syncline {

using Replacements = std::unordered_map<Expr, Expr, ExprHash>;

// Returns the roots with every use of a key replaced by its value. Nodes that depend on no key are reused; an empty
// root remains empty.
std::vector<Expr> substitute(std::span<const Expr> roots, const Replacements& replacements);

// Throws InternalError if a rewrite changed the meta of a value: buffers and kernels rely on it.
void check_rewrite(const Expr& before, const Expr& after);

// Returns the nodes under `roots` with an id of at least `first`, inputs before users. Does not search below a value
// for which `stop` returns true. A user is always newer than its inputs, so this finds every node that depends on
// `first` without a walk through the whole graph.
std::vector<std::shared_ptr<const Node>> nodes_since(std::uint64_t first, std::span<const Expr> roots,
                                                     const std::function<bool(const Expr&)>& stop);

}  // namespace syncline
