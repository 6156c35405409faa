// concretize: the graph for given feeds, before compile. Infers all shapes from the fed shapes, removes the branches
// that a known condition excludes, folds constants, merges equal subexpressions and applies the ops' `simplify`.
//
// The old graph stays unchanged; the new graph shares its unchanged nodes.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "syncline/array.h"
#include "syncline/expr.h"

namespace syncline {

// Maps a leaf to its replacement: a placeholder of the fed shape, or a constant (a fed learning phase).
using Bindings = std::unordered_map<Expr, Expr, ExprHash>;

// Returns the new roots, in the order of `roots`. Placeholders without a binding stay; compile rejects those that a
// step reads.
//
// With `simplify` false (Passes in syncline/session.h), does only what a plan requires. Throws ValueError if a size
// depends on values.
std::vector<Expr> concretize(std::span<const Expr> roots, const Bindings& bindings, bool simplify = true);

// The same, for sizes that may depend on values. While sizes are missing, `roots` is empty and `sizes` holds the roots
// of a graph that computes them. Compute that graph, append its values to `known` in the same order, and call again:
// sizes that depend on these sizes may still be missing.
struct Concrete {
  std::vector<Expr> roots, sizes;
};
using SizeValues = std::vector<Array>;
Concrete concretize(std::span<const Expr> roots, const Bindings& bindings, bool simplify,
                    std::span<const SizeValues> known);

}  // namespace syncline
