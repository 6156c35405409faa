// Matrix products, gather and scatter. All throw ShapeError and DTypeError while the graph is built.
#pragma once

#include <array>

#include "syncline/expr.h"

#pragma GCC visibility push(default)
namespace syncline {

// Keras's dot: sums over the last axis of x and the second last of y (the only one of a vector y). x: (..., k), y:
// (k,), (k, n) or (..., k, n). The result has x's axes without the last, then y's axes without the summed one. Any
// numeric dtype. x may be sparse (syncline/backend/sparse.h; then floating), with y (k,) or (k, n).
Expr dot(const Expr& x, const Expr& y);
// NumPy's matmul: the matrix product over the last two axes; the axes before them broadcast. A vector is a row on the
// left and a column on the right.
Expr matmul(const Expr& x, const Expr& y);
// Keras's batch_dot: for each sample, the sum over axes[0] of x and axes[1] of y, which have equal sizes. x and y have
// at least two axes, samples first. The result has x's axes without the summed one, then y's without the summed one and
// the samples; (samples, 1) instead of (samples). One number means the same axis of both; the default is the last of x
// and the second last of y (of a y with two axes the last). Throws ValueError for axis 0.
Expr batch_dot(const Expr& x, const Expr& y, std::array<int, 2> axes);
Expr batch_dot(const Expr& x, const Expr& y, int axes);
Expr batch_dot(const Expr& x, const Expr& y);
// x (..., k) times the transpose of w (n, k): (..., n).
Expr dot_transposed(const Expr& x, const Expr& w);
// sum over all axes but the last of a[..., k] * b[..., n]: (k, n). The gradient of a weight.
Expr dot_kernel_grad(const Expr& a, const Expr& b);

// Rows of `reference` (along its first axis). Result: indices' shape, then a row's. indices: any integer dtype. A step
// throws ValueError for an index out of range.
Expr gather(const Expr& reference, const Expr& indices);
// x with values[i] subtracted from row indices[i]; duplicates accumulate. values: indices' shape, then a row's. Touches
// only these rows if x may be overwritten.
Expr scatter_sub(const Expr& x, const Expr& values, const Expr& indices);

}  // namespace syncline
#pragma GCC visibility pop
