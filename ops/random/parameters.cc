// Random tensors with tensor parameters: draws with fixed parameters, then shifts and scales. Parameters that are
// constants are checked as numbers are; the numbers of other tensors are known only to a step, which does not check
// them.
#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/graph/deferred.h"
#include "ops/graph/fill.h"
#include "syncline/backend/math.h"
#include "syncline/backend/random.h"

namespace syncline {
namespace {

void check(const char* op, const Expr& first, const Expr& second) {
  if (first.dtype() != second.dtype())
    fail<DTypeError>(op, ": parameters of ", first.dtype(), " and ", second.dtype(), "; cast one of them");
}

// The numbers of a constant, or of a constant that is cast, as float64. Empty for other expressions.
std::optional<Array> known(const Expr& asked) {
  Expr e = asked;
  while (e.op().name == "cast") e = e.input(0);
  if (double number = 0; scalar_value(e, number)) return Array::scalar(number);
  if (e.is<Constant>()) return e.attrs<Constant::Attrs>().value->array.cast(DType::kFloat64);
  return {};
}

template <class Fits>
void check_each(const char* parameter, const Expr& e, const char* advice, Fits fits) {
  const std::optional<Array> numbers = known(e);
  if (!numbers) return;
  for (const double x : numbers->values<double>())
    if (!fits(x)) fail<ValueError>(parameter, " is ", x, "; give ", advice);
}

double rounded(double x, DType dtype) { return Array::scalar(x).cast(dtype).item(); }

// float16 is computed in float32 and integers in float64, because the difference of two bounds may be beyond the dtype.
DType dtype_of_range(DType dtype) {
  if (dtype == DType::kFloat16) return DType::kFloat32;
  return is_floating(dtype) ? dtype : DType::kFloat64;
}

void check_bound(const char* parameter, const Expr& bound) {
  const DType dtype = bound.dtype();
  if (is_integer(dtype) && !bound.is<Fill>()) return;  // an array holds only numbers of its dtype
  check_each(parameter, bound, "a finite number that the dtype holds", [dtype](double x) {
    return is_floating(dtype) ? std::isfinite(rounded(x, dtype)) : rounded(x, dtype) == x;
  });
}

// Compares bounds of one shape, and one bound with all others.
void check_interval(const Expr& minval, const Expr& maxval) {
  const DType dtype = minval.dtype();
  check_bound("random_uniform: minval", minval);
  check_bound("random_uniform: maxval", maxval);
  const std::optional<Array> lows = known(minval), highs = known(maxval);
  if (!lows || !highs || lows->size() == 0 || highs->size() == 0) return;
  if (lows->size() != 1 && highs->size() != 1 && lows->shape() != highs->shape()) return;
  for (std::int64_t i = 0; i < std::max(lows->size(), highs->size()); ++i) {
    const double low = lows->data<double>()[i % lows->size()], high = highs->data<double>()[i % highs->size()];
    const bool in_order = is_floating(dtype) ? low <= high : low < high;
    if (!in_order || !std::isfinite(rounded(high - low, dtype_of_range(dtype))))
      fail<ValueError>("random_uniform: minval ", low, " and maxval ", high, " are not an interval of ", dtype,
                       "; give minval ", is_floating(dtype) ? "<=" : "<", " maxval with a finite difference");
  }
}

void check_deviation(const char* parameter, const Expr& stddev) {
  check_each(parameter, stddev, "0 or more", [](double x) { return x >= 0; });
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
  check_interval(minval, maxval);
  const DType dtype = minval.dtype(), wide = dtype_of_range(dtype);
  const Expr part = random_uniform(shape, key, {.dtype = is_floating(dtype) ? dtype : wide});
  const auto widened = [wide](const Expr& e) { return e.dtype() == wide ? e : cast(e, wide); };
  const Expr low = widened(minval);
  const Expr drawn = low + widened(part) * (widened(maxval) - low);
  const Expr numbers = is_floating(dtype) ? drawn : floordiv(drawn, scalar_like(1, drawn));
  return in_shape_of(part, dtype == wide ? numbers : cast(numbers, dtype), "random_uniform");
}

Expr random_normal(const Dims& shape, const RandomKey& key, const Expr& mean, const Expr& stddev) {
  check("random_normal", mean, stddev);
  check_deviation("random_normal: stddev", stddev);
  const Expr drawn = random_normal(shape, key, {.dtype = mean.dtype()});
  return in_shape_of(drawn, mean + drawn * stddev, "random_normal");
}

Expr truncated_normal(const Dims& shape, const RandomKey& key, const Expr& mean, const Expr& stddev) {
  check("truncated_normal", mean, stddev);
  check_deviation("truncated_normal: stddev", stddev);
  const Expr drawn = truncated_normal(shape, key, {.dtype = mean.dtype()});
  return in_shape_of(drawn, mean + drawn * stddev, "truncated_normal");
}

Expr random_binomial(const Dims& shape, const RandomKey& key, const Expr& p, DType dtype) {
  check_each("random_binomial: p", p, "a probability from 0 to 1", [](double x) { return x >= 0 && x <= 1; });
  const Expr drawn = random_uniform(shape, key, {.dtype = p.dtype()});
  return in_shape_of(drawn, cast(less(drawn, p), dtype), "random_binomial");
}

}  // namespace syncline
