// merge_axes: two neighbouring axes become one, whatever is known of them.
#pragma once

#include "syncline/expr.h"

namespace syncline {

// Axes `axis` and `axis` + 1 as one.
Expr merge_axes(const Expr& x, int axis);

}  // namespace syncline
