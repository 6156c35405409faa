// Random tensors with tensor parameters: draws with fixed parameters, then shifts and scales.
#include "ops/graph/deferred.h"
#include "syncline/backend/math.h"
#include "syncline/backend/random.h"

namespace syncline {
namespace {

void check(const char* op, const Expr& first, const Expr& second) {
  if (first.dtype() != second.dtype())
    fail<DTypeError>(op, ": parameters of ", first.dtype(), " and ", second.dtype(), "; cast one of them");
}

// Returns `numbers`, which must have the shape of `drawn`: parameters must not broadcast it to a larger shape.
Expr in_shape_of(const Expr& drawn, const Expr& numbers, const std::string& op) {
  Meta unknown = numbers.meta();
  unknown.shape = drawn.shape();
  return once_known(op, {numbers, drawn}, unknown, [op](std::span<const Expr> in) {
    if (in[0].shape() != in[1].shape())
      fail<ShapeError>(op, ": the shape is ", in[1].shape(), ", but with the parameters it becomes ", in[0].shape(),
                       "; give parameters that broadcast to the shape");
    return in[0];
  });
}

}  // namespace

Expr random_uniform(const Dims& shape, const RandomKey& key, const Expr& minval, const Expr& maxval) {
  check("random_uniform", minval, maxval);
  const DType dtype = minval.dtype();
  const Expr part = random_uniform(shape, key, {.dtype = is_floating(dtype) ? dtype : DType::kFloat64});
  if (is_floating(dtype)) return in_shape_of(part, minval + part * (maxval - minval), "random_uniform");
  const auto wide = [](const Expr& bound) {
    return cast(bound, DType::kFloat64);
  };  // the range may be beyond the dtype
  const Expr drawn = wide(minval) + part * (wide(maxval) - wide(minval));
  return in_shape_of(part, cast(floordiv(drawn, scalar_like(1, drawn)), dtype), "random_uniform");
}

Expr random_normal(const Dims& shape, const RandomKey& key, const Expr& mean, const Expr& stddev) {
  check("random_normal", mean, stddev);
  const Expr drawn = random_normal(shape, key, {.dtype = mean.dtype()});
  return in_shape_of(drawn, mean + drawn * stddev, "random_normal");
}

Expr truncated_normal(const Dims& shape, const RandomKey& key, const Expr& mean, const Expr& stddev) {
  check("truncated_normal", mean, stddev);
  const Expr drawn = truncated_normal(shape, key, {.dtype = mean.dtype()});
  return in_shape_of(drawn, mean + drawn * stddev, "truncated_normal");
}

Expr random_binomial(const Dims& shape, const RandomKey& key, const Expr& p, DType dtype) {
  const Expr drawn = random_uniform(shape, key, {.dtype = p.dtype()});
  return in_shape_of(drawn, cast(less(drawn, p), dtype), "random_binomial");
}

}  // namespace syncline
