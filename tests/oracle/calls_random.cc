// Implementations draw different random numbers, so the adapters return statistics that the distribution determines.
#include <limits>

#include "syncline/backend/config.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "tests/oracle/oracle_case.h"

namespace syncline::testing {
namespace {

// An empty tensor of x's dtype, for comparing the dtype.
Expr none_of(const Expr& x) { return slice_axis(flatten(x), 0, 0, 0); }

// Shape, dtype, mean and standard deviation, the fractions below the mean plus multiples of the standard deviation, and
// whether low <= x and x <= high for all elements.
std::vector<Expr> summary(const Expr& x, double low, double high) {
  const Expr wide = cast(x, DType::kFloat64);
  const Expr center = mean(wide), spread = std(wide);
  std::vector<Expr> fractions;
  for (const double q : {-1.0, -0.5, 0.0, 0.5, 1.0})
    fractions.push_back(mean(cast(less(wide, center + spread * q), DType::kFloat64)));
  const Expr above = all(greater_equal(wide, scalar_like(low, wide))),
             below = all(less_equal(wide, scalar_like(high, wide)));
  return {shape(x), none_of(x), stack({center, spread}), stack(fractions), stack({above, below})};
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

UniformOptions uniform_of(const Call& call) {
  return {.minval = call.get("minval", 0.0), .maxval = call.get("maxval", 1.0), .dtype = call.get("dtype", floatx())};
}

NormalOptions normal_of(const Call& call) {
  return {.mean = call.get("mean", 0.0), .stddev = call.get("stddev", 1.0), .dtype = call.get("dtype", floatx())};
}

// Cases without elements compare the tensor itself.
bool is_empty(const Call& call) { return call.get<Shape>("shape").size() == 0; }

}  // namespace

SYNCLINE_ORACLE_CALL(random_uniform) {
  const UniformOptions options = uniform_of(call);
  const Expr x = random_uniform(call.get<Shape>("shape"), options);
  if (is_empty(call)) return x;
  return summary(x, options.minval, options.maxval);
}

SYNCLINE_ORACLE_CALL(random_normal) {
  const Expr x = random_normal(call.get<Shape>("shape"), normal_of(call));
  if (is_empty(call)) return x;
  return summary(x, -kInfinity, kInfinity);
}

SYNCLINE_ORACLE_CALL(truncated_normal) {
  const NormalOptions options = normal_of(call);
  const Expr x = truncated_normal(call.get<Shape>("shape"), options);
  if (is_empty(call)) return x;
  const double reach = 2.000001 * options.stddev;
  return summary(x, options.mean - reach, options.mean + reach);
}

SYNCLINE_ORACLE_CALL(random_binomial) {
  const DType dtype = call.get("dtype", floatx());
  const Expr x = random_binomial(call.get<Shape>("shape"), {.p = call.get<double>("p"), .dtype = dtype});
  if (is_empty(call)) return x;
  const Expr binary = all(equal(x * x, x));
  return {shape(x), none_of(x), cast(mean(x), DType::kFloat64), binary};
}

SYNCLINE_ORACLE_CALL(random_uniform_variable) {
  const double low = call.get<double>("low"), high = call.get<double>("high");
  return summary(random_uniform_variable(call.get<Shape>("shape"), low, high, {.dtype = call.get<DType>("dtype")}), low,
                 high);
}

SYNCLINE_ORACLE_CALL(random_normal_variable) {
  const Expr x = random_normal_variable(call.get<Shape>("shape"), call.get<double>("mean"), call.get<double>("scale"),
                                        {.dtype = call.get<DType>("dtype")});
  return summary(x, -kInfinity, kInfinity);
}

SYNCLINE_ORACLE_CALL(dropout) {
  const double level = call.get<double>("level");
  const Expr x = tile(call.tensor(0), {1, 4000});
  std::optional<Dims> noise_shape;
  if (call.has("noise_shape")) noise_shape = call.get<Shape>("noise_shape");
  const Expr y = dropout(x, level, noise_shape);
  const Expr kept = not_equal(y, zeros_like(y)), wanted = select(kept, x / (1 - level), zeros_like(y));
  auto number = [](const Expr& truth) { return sum(cast(truth, DType::kFloat64)); };
  Expr parted = scalar_like(0, number(kept));
  if (noise_shape && noise_shape->numbers()[0] == 1) {
    const Expr column = sum(cast(kept, DType::kFloat64), {0}), rows = count(kept, {0}, DType::kFloat64);
    parted = number(logical_and(not_equal(column, zeros_like(column)), not_equal(column, rows)));
  }
  return {mean(cast(kept, DType::kFloat64)), number(greater(abs(y - wanted), abs(wanted) * 1e-6)), parted,
          cast(mean(y) / mean(x), DType::kFloat64), slice_axis(y - wanted, 1, 0, 2)};
}

}  // namespace syncline::testing
