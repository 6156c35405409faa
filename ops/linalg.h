// Products, and rows of a table. All throw ShapeError and DTypeError while the graph is built.
#pragma once

#include "ops/expr.h"

namespace syncline {

// Keras's dot: sums over the last axis of x and the second last of y (its only one, if y is a vector). x: (..., k),
// y: (k,), (k, n) or (..., k, n); the result has x's axes but the last, then y's but that one. Floating dtypes.
Expr dot(const Expr& x, const Expr& y);
// x (..., k) times the transpose of w (n, k): (..., n).
Expr dot_transposed(const Expr& x, const Expr& w);
// sum over all axes but the last of a[..., k] * b[..., n]: (k, n). The gradient of a weight.
Expr dot_kernel_grad(const Expr& a, const Expr& b);

}  // namespace syncline
