// relu and elu with tensors as parameters: slopes and bounds can be learnt.
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"

namespace syncline {

Expr relu(const Expr& x, const ReluTensors& tensors) {
  const auto& [alpha, max_value, threshold] = tensors;
  const Expr zero = scalar_like(0, x);
  if (alpha && !max_value && !threshold) return relu(x) + minimum(x, zero) * alpha;  // at 0 the slope is alpha
  // `less` is false for NaN, so NaN stays NaN, with the gradient 0.
  Expr y = threshold ? select(less(x, threshold), zero, maximum(x, stop_gradient(threshold))) : relu(x);
  if (max_value) y = maximum(minimum(y, max_value), zero);
  if (!alpha) return y;
  const Expr bound = threshold ? threshold : zero;
  // A difference of unsigned integers must not be negative.
  return y - (is_integer(x.dtype()) ? maximum(x, bound) - x : relu(threshold ? threshold - x : neg(x))) * alpha;
}

Expr elu(const Expr& x, const Expr& alpha) {
  const Expr y = elu(x);
  return select(greater(x, scalar_like(0, x)), y, y * alpha);
}

}  // namespace syncline
