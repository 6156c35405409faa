// clip: min(max(x, low), high). The gradient passes where low <= x <= high.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "syncline/backend/math.h"

namespace syncline {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// -infinity below and infinity above are no bounds.
struct Bounds {
  double low = -kInfinity, high = kInfinity;
};

// For integers: drops bounds that all numbers of the dtype meet; moves bounds that none meets into the dtype's range.
Bounds fit(Bounds bounds, DType dtype) {
  if (!is_integer(dtype)) return bounds;
  const auto [least, greatest] = with_number(dtype, []<class T>(T) {
    return std::pair(static_cast<double>(std::numeric_limits<T>::lowest()),
                     static_cast<double>(std::numeric_limits<T>::max()));
  });
  if (std::isfinite(bounds.low)) bounds.low = bounds.low <= least ? -kInfinity : std::min(bounds.low, greatest);
  if (std::isfinite(bounds.high)) bounds.high = bounds.high >= greatest ? kInfinity : std::max(bounds.high, least);
  return bounds;
}

}  // namespace

Expr clip(const Expr& x, std::optional<double> min_value, std::optional<double> max_value) {
  const auto [low, high] = fit({min_value.value_or(-kInfinity), max_value.value_or(kInfinity)}, x.dtype());
  const Expr raised = low != -kInfinity ? maximum(x, scalar_like(low, x)) : x;
  return high != kInfinity ? minimum(raised, scalar_like(std::max(high, low), x)) : raised;
}

}  // namespace syncline
