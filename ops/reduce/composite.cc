// mean, var, std and logsumexp, composed of other functions.
#include <limits>

#include "ops/reduce/axes.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/config.h"

namespace syncline {

namespace {

// x in the dtype of the computation: floatx for bool and integers, float32 instead of float16, so that neither a sum
// nor a number of elements overflows.
Expr computed_with(const Expr& x) {
  const DType dtype = is_floating(x.dtype()) ? x.dtype() : current_config().floatx;
  return cast(x, dtype == DType::kFloat16 ? DType::kFloat32 : dtype);
}

Expr rounded(const Expr& y, const Expr& x) {
  return cast(y, is_floating(x.dtype()) ? x.dtype() : current_config().floatx);
}

}  // namespace

Expr mean(const Expr& x, Axes axes, bool keepdims) {
  axis_mask("mean", axes.of(x.ndim()), x.ndim());
  const Expr number = computed_with(x);
  return rounded(sum(number, axes, keepdims) / count(x, axes, number.dtype()), x);
}

Expr var(const Expr& x, Axes axes, bool keepdims) {
  axis_mask("var", axes.of(x.ndim()), x.ndim());
  const Expr number = computed_with(x);
  return rounded(mean(square(number - mean(number, axes, /*keepdims=*/true)), axes, keepdims), x);
}

Expr std(const Expr& x, Axes axes, bool keepdims) {
  axis_mask("std", axes.of(x.ndim()), x.ndim());
  return rounded(sqrt(var(computed_with(x), std::move(axes), keepdims)), x);
}

Expr logsumexp(const Expr& x, Axes axes, bool keepdims) {
  const AxisMask mask = axis_mask("logsumexp", axes.of(x.ndim()), x.ndim());
  const Expr number = computed_with(x);
  // Any shift gives the same value and gradient; the largest element keeps exp from overflowing.
  const Expr top = stop_gradient(max(number, axes, /*keepdims=*/true));
  const Expr finite = less(abs(top), scalar_like(std::numeric_limits<double>::infinity(), top));
  const Expr shift = select(finite, top, scalar_like(0, top));
  Expr y = rounded(log(sum(exp(number - shift), axes, /*keepdims=*/true)) + shift, x);
  if (keepdims) return y;
  for (int axis = x.ndim() - 1; axis >= 0; --axis)
    if (mask[axis]) y = squeeze(y, axis);
  return y;
}

}  // namespace syncline
