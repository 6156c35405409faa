// clip: min(max(x, low), high). The gradient passes where x lies between the bounds, and on them.
#include <algorithm>

#include "ops/math.h"

namespace syncline {

Expr clip(const Expr& x, std::optional<double> min_value, std::optional<double> max_value) {
  if (min_value && max_value) max_value = std::max(*min_value, *max_value);
  const Expr raised = min_value ? maximum(x, scalar_like(*min_value, x)) : x;
  return max_value ? minimum(raised, scalar_like(*max_value, x)) : raised;
}

}  // namespace syncline
