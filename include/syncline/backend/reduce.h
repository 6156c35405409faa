// Reductions of the Keras backend. `axes` may be negative; the default is all. keepdims keeps the reduced axes with
// size 1. All throw ValueError for an axis out of range and DTypeError for an unsupported dtype, while the graph is
// built.
#pragma once

#include "syncline/axes.h"
#include "syncline/expr.h"

#pragma GCC visibility push(default)
namespace syncline {

// Result in x's dtype; any numeric dtype.
Expr sum(const Expr& x, Axes axes = {}, bool keepdims = false);
Expr prod(const Expr& x, Axes axes = {}, bool keepdims = false);
// Elements that tie share the gradient equally.
Expr max(const Expr& x, Axes axes = {}, bool keepdims = false);
Expr min(const Expr& x, Axes axes = {}, bool keepdims = false);
// Logical or, logical and; the result is bool. Other dtypes are compared with 0 first.
Expr any(const Expr& x, Axes axes = {}, bool keepdims = false);
Expr all(const Expr& x, Axes axes = {}, bool keepdims = false);
// The first index of the largest (smallest) element along an axis: int64.
Expr argmax(const Expr& x, int axis = -1);
Expr argmin(const Expr& x, int axis = -1);

struct ScanOptions {
  bool exclusive = false;  // result i excludes element i
  bool reverse = false;    // from the end
};
Expr cumsum(const Expr& x, int axis = 0, ScanOptions options = {});
Expr cumprod(const Expr& x, int axis = 0, ScanOptions options = {});

// Integers and bool are cast to floatx first. var divides by the number of elements.
Expr mean(const Expr& x, Axes axes = {}, bool keepdims = false);
Expr var(const Expr& x, Axes axes = {}, bool keepdims = false);
Expr std(const Expr& x, Axes axes = {}, bool keepdims = false);
// log(sum(exp(x))) without overflow.
Expr logsumexp(const Expr& x, Axes axes = {}, bool keepdims = false);

// Sums dy over the axes along which an operand of like's shape was broadcast; the result has like's shape.
Expr sum_like(const Expr& dy, const Expr& like);

}  // namespace syncline
#pragma GCC visibility pop
