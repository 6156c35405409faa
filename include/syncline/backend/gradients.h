// Reverse-mode differentiation: builds a graph of gradients from a graph.
#pragma once

#include <span>
#include <vector>

#include "syncline/expr.h"

#pragma GCC visibility push(default)
namespace syncline {

// d(sum of loss) / d(x) for each x in `wrt`, as new expressions; an empty Expr where the loss does not depend on x
// through differentiable operations. The results may be differentiated again. `wrt` may hold variables, placeholders
// and intermediate values. Throws DTypeError if the loss is not floating.
std::vector<Expr> gradients(const Expr& loss, std::span<const Expr> wrt);
inline std::vector<Expr> gradients(const Expr& loss, std::initializer_list<Expr> wrt) {
  return gradients(loss, std::span<const Expr>(wrt.begin(), wrt.size()));
}

// gradients() with a given gradient for each of several outputs (empty: none). Differentiates loop bodies.
std::vector<Expr> backpropagate(std::span<const Expr> outputs, std::span<const Expr> output_gradients,
                                std::span<const Expr> wrt);

}  // namespace syncline
#pragma GCC visibility pop
