// merge_axes: joins two neighbouring axes of known or unknown size.
#pragma once

#include "syncline/expr.h"

namespace syncline {

// Merges `axis` and `axis` + 1; `axis` is not negative.
Expr merge_axes(const Expr& x, int axis);

}  // namespace syncline
