// mean, var, std and logsumexp, in terms of other functions.
#include <limits>

#include "ops/core.h"
#include "ops/math.h"
#include "ops/reduce.h"
#include "ops/reduce/axes.h"
#include "ops/shape.h"

namespace syncline {

Expr mean(const Expr& x, std::vector<int> axes, bool keepdims) {
  const Expr number = is_floating(x.dtype()) ? x : cast(x, DType::kFloat32);
  return sum(number, axes, keepdims) / count(x, axes, number.dtype());
}

Expr var(const Expr& x, std::vector<int> axes, bool keepdims) {
  const Expr number = is_floating(x.dtype()) ? x : cast(x, DType::kFloat32);
  return mean(square(number - mean(number, axes, /*keepdims=*/true)), axes, keepdims);
}

Expr std(const Expr& x, std::vector<int> axes, bool keepdims) { return sqrt(var(x, std::move(axes), keepdims)); }

Expr logsumexp(const Expr& x, std::vector<int> axes, bool keepdims) {
  // Any shift gives the same value and gradient; the largest element keeps exp from overflowing.
  const Expr top = stop_gradient(max(x, axes, /*keepdims=*/true));
  const Expr finite = less(abs(top), scalar_like(std::numeric_limits<double>::infinity(), top));
  const Expr shift = select(finite, top, scalar_like(0, top));
  Expr y = log(sum(exp(x - shift), axes, /*keepdims=*/true)) + shift;
  if (keepdims) return y;
  const AxisMask mask = axis_mask("logsumexp", axes, x.ndim());
  for (int axis = x.ndim() - 1; axis >= 0; --axis)
    if (mask[axis]) y = squeeze(y, axis);
  return y;
}

}  // namespace syncline
