// A graph with some of its values replaced. Used where loops are built and differentiated, and where plans are made.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "syncline/expr.h"

namespace syncline {

using Replacements = std::unordered_map<Expr, Expr, ExprHash>;

// Each root with every use of a key replaced by its value. Nodes that depend on no key are kept as they are; an empty
// root stays empty.
std::vector<Expr> substitute(std::span<const Expr> roots, const Replacements& replacements);

// What is known of a value must stay as it is when a plan rewrites it: buffers and kernels rely on it. Throws
// InternalError otherwise.
void check_rewrite(const Expr& before, const Expr& after);

// The nodes under `roots` that were built after `first` (by id, that node included), inputs before users; below a value
// for which `stop` holds nothing is looked for. Whatever depends on a node was built after it, so this finds all that
// depends on `first` without a walk through the whole graph.
std::vector<std::shared_ptr<const Node>> nodes_since(std::uint64_t first, std::span<const Expr> roots,
                                                     const std::function<bool(const Expr&)>& stop);

}  // namespace syncline
