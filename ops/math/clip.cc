// clip: min(max(x, low), high). The gradient passes where low <= x <= high.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "syncline/backend/math.h"

namespace syncline {

namespace {

// For integers: drops bounds that all numbers of the dtype meet; moves bounds that none meets into the dtype's range.
void fit_bounds(DType dtype, std::optional<double>& min_value, std::optional<double>& max_value) {
  if (!is_integer(dtype)) return;
  const auto [low, high] = with_number(dtype, []<class T>(T) {
    return std::pair(static_cast<double>(std::numeric_limits<T>::lowest()),
                     static_cast<double>(std::numeric_limits<T>::max()));
  });
  if (min_value && *min_value <= low) min_value.reset();
  if (max_value && *max_value >= high) max_value.reset();
  if (min_value && std::isfinite(*min_value)) min_value = std::min(*min_value, high);
  if (max_value && std::isfinite(*max_value)) max_value = std::max(*max_value, low);
}

}  // namespace

Expr clip(const Expr& x, std::optional<double> min_value, std::optional<double> max_value) {
  fit_bounds(x.dtype(), min_value, max_value);
  const Expr raised = min_value ? maximum(x, scalar_like(*min_value, x)) : x;
  if (!max_value) return raised;
  return minimum(raised, scalar_like(min_value ? std::max(*min_value, *max_value) : *max_value, x));
}

}  // namespace syncline
