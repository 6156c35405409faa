// Random tensors: uniform, normal, truncated normal, binomial.
#include "syncline/backend/random.h"
#include "ops/graph/deferred.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/random/draw.h"
#include "ops/random/inverse_normal.h"
#include "syncline/backend/math.h"

namespace syncline {
namespace {

constexpr double kLargestFloat16 = 65504;

struct RandomAttrs {
  double first = 0, second = 1;  // minval and maxval, mean and stddev, or p
  DType dtype = DType::kFloat32;
  Shape shape;  // unused if an operand gives the shape
  std::shared_ptr<RandomOp> random_op;
};

constexpr auto kRandomFields = std::tuple{field("first", &RandomAttrs::first), field("second", &RandomAttrs::second),
                                          field("dtype", &RandomAttrs::dtype), field("shape", &RandomAttrs::shape),
                                          field("op", &RandomAttrs::random_op)};

// Base of the ops below. Self::draw fills one contiguous run of the global value.
template <class Self>
struct Random {
  using Attrs = RandomAttrs;
  static constexpr auto fields = kRandomFields;
  static constexpr bool kTakesFloat16 = true;
  static constexpr double kCost = 1;
  static constexpr bool kIntegers = false;

  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    const bool allowed = is_floating(a.dtype) || (Self::kIntegers && is_integer(a.dtype));
    if (!allowed)
      fail<DTypeError>(Self::kName, ": cannot draw numbers of ", a.dtype, "; draw another dtype and cast the result");
    const Shape& shape = in.empty() ? a.shape : in[0].shape;
    if (in.empty() && !shape.is_known())
      fail<ShapeError>(Self::kName, ": the shape ", shape,
                       " has an unknown dimension; draw numbers in the shape of a tensor instead");
    return {a.dtype, shape};
  }
  // The operand provides only its shape, so any placement works.
  static Placed place(const Attrs&, const PlaceArgs& args) {
    if (args.in.empty() || !args.at[0].is_split()) return {{args.at.begin(), args.at.end()}, {Placement::replicated()}};
    return {{args.at[0]}, {args.at[0]}};
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const Stream stream = stream_of(*a.random_op, *k.random_runs);
    if (k.out_dtype() == DType::kFloat16)
      return for_global_runs<Float16>(k, Self::kCost, [&](std::uint64_t first, std::int64_t n, Float16* out) {
        draw_halves(a, stream, first, n, out);
      });
    const auto draw_all = [&]<class T>(T) {
      for_global_runs<T>(k, Self::kCost,
                         [&](std::uint64_t first, std::int64_t n, T* out) { Self::draw(a, stream, first, n, out); });
    };
    if constexpr (Self::kIntegers) with_dtype(k.out_dtype(), draw_all);
    else with_floating(k.out_dtype(), draw_all);
  }
  // Draws in float32 and rounds.
  static void draw_halves(const Attrs& a, const Stream& stream, std::uint64_t first, std::int64_t n, Float16* out) {
    constexpr std::int64_t kPart = 256;
    float part[kPart];
    for (std::int64_t begin = 0; begin < n; begin += kPart) {
      const std::int64_t size = std::min(kPart, n - begin);
      Self::draw(a, stream, first + static_cast<std::uint64_t>(begin), size, part);
      for (std::int64_t i = 0; i < size; ++i) out[begin + i] = Self::half(a, part[i]);
    }
  }
  static Float16 half(const Attrs&, float x) { return Float16(x); }
  static constexpr NoGradient grad{"random numbers do not depend on values"};
};

struct RandomUniform : Random<RandomUniform> {
  static constexpr std::string_view kName = "random_uniform";
  static constexpr bool kIntegers = true;
  template <class T>
  requires std::is_integral_v<T>
  static void draw(const Attrs& a, const Stream& stream, std::uint64_t first, std::int64_t n, T* out) {
    constexpr std::int64_t kPart = 256;
    double part[kPart];
    // Rounding must not reach maxval, which is excluded.
    const double top = std::max(a.first, std::min(a.second - 1, std::nextafter(a.second, a.first)));
    for (std::int64_t begin = 0; begin < n; begin += kPart) {
      const std::int64_t size = std::min(kPart, n - begin);
      draw_uniform(stream, first + static_cast<std::uint64_t>(begin), size, part);
      for (std::int64_t i = 0; i < size; ++i)
        out[begin + i] = static_cast<T>(std::min(a.first + std::floor(part[i] * (a.second - a.first)), top));
    }
  }
  template <class T>
  static void draw(const Attrs& a, const Stream& stream, std::uint64_t first, std::int64_t n, T* out) {
    draw_uniform(stream, first, n, out);
    const T low = static_cast<T>(a.first), range = static_cast<T>(a.second - a.first);
    // Rounding must not reach maxval, which is excluded.
    const T top = std::max(low, std::nextafter(static_cast<T>(a.second), low));
    for (std::int64_t i = 0; i < n; ++i) out[i] = std::min(low + out[i] * range, top);
  }
  static Float16 half(const Attrs& a, float x) {
    const Float16 rounded(x);
    const float value = static_cast<float>(rounded);
    if (value < static_cast<float>(a.second) || !(a.first < a.second)) return rounded;
    const int below = value > 0 ? rounded.bits - 1 : value < 0 ? rounded.bits + 1 : 0x8001;
    return Float16::from_bits(static_cast<std::uint16_t>(below));
  }
};

struct RandomNormal : Random<RandomNormal> {
  static constexpr std::string_view kName = "random_normal";
  static constexpr double kCost = 3;
  template <class T>
  static void draw(const Attrs& a, const Stream& stream, std::uint64_t first, std::int64_t n, T* out) {
    draw_normal(stream, first, n, out);
    const T mean = static_cast<T>(a.first), deviation = static_cast<T>(a.second);
    for (std::int64_t i = 0; i < n; ++i) out[i] = mean + out[i] * deviation;
  }
};

// Applies the inverse distribution function, so each element uses exactly one draw, independent of its neighbours.
struct TruncatedNormal : Random<TruncatedNormal> {
  static constexpr std::string_view kName = "truncated_normal";
  static constexpr double kCost = 20;
  template <class T>
  static void draw(const Attrs& a, const Stream& stream, std::uint64_t first, std::int64_t n, T* out) {
    static const double below = 0.5 * std::erfc(std::sqrt(2.0));  // probability of a value below -2
    draw_uniform(stream, first, n, out);
    for (std::int64_t i = 0; i < n; ++i) {
      const double z = inverse_normal(below + static_cast<double>(out[i]) * (1 - 2 * below));
      out[i] = static_cast<T>(a.first + a.second * std::clamp(z, -2.0, 2.0));
    }
  }
};

struct RandomBinomial : Random<RandomBinomial> {
  static constexpr std::string_view kName = "random_binomial";
  template <class T>
  static void draw(const Attrs& a, const Stream& stream, std::uint64_t first, std::int64_t n, T* out) {
    draw_uniform(stream, first, n, out);
    const T p = static_cast<T>(a.first);
    for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(out[i] < p);
  }
};

SYNCLINE_REGISTER_OP(RandomUniform)
SYNCLINE_REGISTER_OP(RandomNormal)
SYNCLINE_REGISTER_OP(TruncatedNormal)
SYNCLINE_REGISTER_OP(RandomBinomial)

// The dtype must represent all numbers between the bounds and, for floating dtypes, the difference of the bounds.
// float16 is drawn in float32, so its bounds may be further apart than its largest number.
void check_range(const UniformOptions& o) {
  const auto check = [&](double low, double high, bool far) {
    if (o.minval < low || o.maxval > high || far)
      fail<ValueError>("random_uniform: minval ", o.minval, " and maxval ", o.maxval, " exceed the range of ", o.dtype,
                       "; give bounds from ", low, " to ", high, far ? " whose difference is finite too" : "");
  };
  if (o.dtype == DType::kFloat16) return check(-kLargestFloat16, kLargestFloat16, false);
  with_dtype(o.dtype, [&]<class T>(T) {
    const auto low = static_cast<double>(std::numeric_limits<T>::lowest());
    auto high = static_cast<double>(std::numeric_limits<T>::max());
    if constexpr (std::is_integral_v<T>) high = std::ldexp(1.0, std::numeric_limits<T>::digits);  // it is excluded
    check(low, high, std::is_floating_point_v<T> && o.maxval - o.minval > high);
  });
}

RandomAttrs attrs_of(const UniformOptions& o, const RandomKey& key, Shape shape) {
  if (!(o.minval <= o.maxval) || !std::isfinite(o.maxval - o.minval))
    fail<ValueError>("random_uniform: minval ", o.minval, " and maxval ", o.maxval,
                     " are not an interval; give finite numbers with a finite difference, minval <= maxval");
  if (is_integer(o.dtype) &&
      (std::floor(o.minval) != o.minval || std::floor(o.maxval) != o.maxval || o.minval == o.maxval))
    fail<ValueError>("random_uniform: minval ", o.minval, " and maxval ", o.maxval, " do not fit ", o.dtype,
                     "; give two whole numbers, minval < maxval");
  check_range(o);
  return {o.minval, o.maxval, o.dtype, std::move(shape), key.op()};
}

RandomAttrs attrs_of(const NormalOptions& o, const RandomKey& key, Shape shape) {
  if (!(o.stddev >= 0)) fail<ValueError>("random normal numbers: stddev is ", o.stddev, "; give 0 or more");
  return {o.mean, o.stddev, o.dtype, std::move(shape), key.op()};
}

RandomAttrs attrs_of(const BinomialOptions& o, const RandomKey& key, Shape shape) {
  if (!(o.p >= 0 && o.p <= 1)) fail<ValueError>("random_binomial: p is ", o.p, "; give a probability from 0 to 1");
  return {o.p, 0, o.dtype, std::move(shape), key.op()};
}

// Converts zeros and ones to dtypes without a random kernel.
template <class Draw>
Expr of_any_dtype(const BinomialOptions& options, Draw draw) {
  if (is_floating(options.dtype)) return draw(options);
  return cast(draw({.p = options.p, .dtype = DType::kFloat32}), options.dtype);
}

template <class Op>
Expr draw(const Dims& shape, const RandomAttrs& attrs) {
  return with_numbers(
      std::string(Op::kName), {}, shape, {attrs.dtype, shape.numbers()},
      [attrs](std::span<const Expr>, const Shape& numbers) {
        RandomAttrs known = attrs;
        known.shape = numbers;
        return apply<Op>({}, std::move(known));
      },
      attrs.random_op);
}

}  // namespace

std::string RandomOp::describe() const {
  return seed_of_rank ? "of a seed that was drawn" : join_text("of seed ", seed, ", number ", op);
}

Expr random_uniform(const Dims& shape, const RandomKey& key, const UniformOptions& options) {
  return draw<RandomUniform>(shape, attrs_of(options, key, shape.numbers()));
}
Expr random_normal(const Dims& shape, const RandomKey& key, const NormalOptions& options) {
  return draw<RandomNormal>(shape, attrs_of(options, key, shape.numbers()));
}
Expr truncated_normal(const Dims& shape, const RandomKey& key, const NormalOptions& options) {
  return draw<TruncatedNormal>(shape, attrs_of(options, key, shape.numbers()));
}
Expr random_binomial(const Dims& shape, const RandomKey& key, const BinomialOptions& options) {
  return of_any_dtype(options, [&](const BinomialOptions& o) {
    return draw<RandomBinomial>(shape, attrs_of(o, key, shape.numbers()));
  });
}
Expr random_uniform_like(const Expr& x, const RandomKey& key, const UniformOptions& options) {
  return apply<RandomUniform>({x}, attrs_of(options, key, {}));
}
Expr random_normal_like(const Expr& x, const RandomKey& key, const NormalOptions& options) {
  return apply<RandomNormal>({x}, attrs_of(options, key, {}));
}
Expr truncated_normal_like(const Expr& x, const RandomKey& key, const NormalOptions& options) {
  return apply<TruncatedNormal>({x}, attrs_of(options, key, {}));
}
Expr random_binomial_like(const Expr& x, const RandomKey& key, const BinomialOptions& options) {
  return of_any_dtype(options,
                      [&](const BinomialOptions& o) { return apply<RandomBinomial>({x}, attrs_of(o, key, {})); });
}

}  // namespace syncline
