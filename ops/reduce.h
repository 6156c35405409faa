// Reductions of the Keras backend. `axes` may be negative; empty means all. With keepdims the reduced axes stay as
// ones. All throw ValueError for an axis out of range and DTypeError for a dtype they do not take, while the graph is
// built.
#pragma once

#include <vector>

#include "ops/expr.h"

namespace syncline {

// In x's dtype; not bool.
Expr sum(const Expr& x, std::vector<int> axes = {}, bool keepdims = false);
// Sums dy over the axes along which an operand of the shape of `like` was broadcast: the result has like's shape.
Expr sum_like(const Expr& dy, const Expr& like);

}  // namespace syncline
