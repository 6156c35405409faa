// Random tensors whose parameters are tensors: what is drawn by fixed ones, moved and scaled.
#include "ops/math.h"
#include "ops/random.h"

namespace syncline {
namespace {

void check(const char* op, const Expr& first, const Expr& second) {
  if (first.dtype() != second.dtype())
    fail<DTypeError>(op, ": parameters of ", first.dtype(), " and ", second.dtype(), "; cast one of them");
}

}  // namespace

Expr random_uniform(const Dims& shape, const RandomKey& key, const Expr& minval, const Expr& maxval) {
  check("random_uniform", minval, maxval);
  const DType dtype = minval.dtype();
  if (is_floating(dtype)) return minval + random_uniform(shape, key, {.dtype = dtype}) * (maxval - minval);
  const Expr part = random_uniform(shape, key, {.dtype = DType::kFloat64});
  const auto wide = [](const Expr& bound) {
    return cast(bound, DType::kFloat64);
  };  // the range may be beyond the dtype
  const Expr drawn = wide(minval) + part * (wide(maxval) - wide(minval));
  return cast(floordiv(drawn, scalar_like(1, drawn)), dtype);
}

Expr random_normal(const Dims& shape, const RandomKey& key, const Expr& mean, const Expr& stddev) {
  check("random_normal", mean, stddev);
  return mean + random_normal(shape, key, {.dtype = mean.dtype()}) * stddev;
}

Expr truncated_normal(const Dims& shape, const RandomKey& key, const Expr& mean, const Expr& stddev) {
  check("truncated_normal", mean, stddev);
  return mean + truncated_normal(shape, key, {.dtype = mean.dtype()}) * stddev;
}

Expr random_binomial(const Dims& shape, const RandomKey& key, const Expr& p, DType dtype) {
  return cast(less(random_uniform(shape, key, {.dtype = p.dtype()}), p), dtype);
}

}  // namespace syncline
