// First pass of a plan: the graph as it is for given feeds. Shapes are inferred again with the fed ones; branches that
// the learning phase rules out, constants, repeated subexpressions and operations that do nothing are gone.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "syncline/array.h"
#include "syncline/expr.h"

namespace syncline {

// What stands in for a leaf: a placeholder of the fed shape, or a constant (a fed learning phase).
using Bindings = std::unordered_map<Expr, Expr, ExprHash>;

// The roots of the new graph, one for each old root. Placeholders without a binding keep their place (and fail later,
// if a step really needs them).
//
// Without `simplify` (Passes in syncline/session.h) it does only what a plan cannot do without. Throws ValueError where
// a size depends on values.
std::vector<Expr> concretize(std::span<const Expr> roots, const Bindings& bindings, bool simplify = true);

// The same where sizes may depend on values. Such sizes are computed first, those that follow from other such sizes
// after them: while some are missing, `roots` is empty and `sizes` holds them, as roots of a graph of their own. Their
// values are then the last element of `known`, in the same order.
struct Concrete {
  std::vector<Expr> roots, sizes;
};
using SizeValues = std::vector<Array>;
Concrete concretize(std::span<const Expr> roots, const Bindings& bindings, bool simplify,
                    std::span<const SizeValues> known);

}  // namespace syncline
