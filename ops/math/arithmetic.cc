// Arithmetic on two operands: x + y, x - y, x * y, x / y, max, min, x^y; and -x.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/math/arithmetic.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include <hwy/highway.h>

#include <cmath>

#include "base/convert.h"
#include "ops/kernels/fused/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syncline {
namespace HWY_NAMESPACE {

struct AddF {
  template <class T>
  T operator()(T x, T y) const {
    return static_cast<T>(wrapping(x) + wrapping(y));
  }
};
struct SubF {
  template <class T>
  T operator()(T x, T y) const {
    return static_cast<T>(wrapping(x) - wrapping(y));
  }
};
struct MulF {
  template <class T>
  T operator()(T x, T y) const {
    return static_cast<T>(wrapping(x) * wrapping(y));
  }
};
struct NegF {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(-wrapping(x));
  }
};
// NaN in either operand gives NaN, as in NumPy and TensorFlow.
struct MaxF {
  template <class T>
  T operator()(T x, T y) const {
    return x > y || x != x ? x : y;
  }
};
struct MinF {
  template <class T>
  T operator()(T x, T y) const {
    return x < y || x != x ? x : y;
  }
};
struct DivF {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) return x / y;
    else if (y == 0) return T{0};  // no division trap
    else if (std::is_signed_v<T> && y == static_cast<T>(-1)) return static_cast<T>(-wrapping(x));
    else return static_cast<T>(x / y - ((x % y != 0) && ((x < T{}) != (y < T{})) ? 1 : 0));  // rounded down
  }
};
struct PowF {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) return std::pow(x, y);
    else if constexpr (std::is_same_v<T, bool>) return x || !y;
    else return power(x, y);
  }
  template <class T>
  static T power(T x, T y) {
    if (y < 0)
      fail<ValueError>("pow: an integer cannot be raised to the negative power ", +y,
                       "; cast to a floating dtype first");
    T result = 1;
    for (; y > 0; y = static_cast<T>(y >> 1)) {
      if ((y & 1) != 0) result = static_cast<T>(wrapping(result) * wrapping(x));
      x = static_cast<T>(wrapping(x) * wrapping(x));
    }
    return result;
  }
};

constexpr NamedBlock kBlocks[] = {
    {"add", &plain_block_of<AddF, 2>},     {"sub", &plain_block_of<SubF, 2>},     {"mul", &plain_block_of<MulF, 2>},
    {"div", &plain_block_of<DivF, 2>},     {"pow", &plain_block_of<PowF, 2>},     {"neg", &plain_block_of<NegF, 1>},
    {"maximum", &plain_block_of<MaxF, 2>}, {"minimum", &plain_block_of<MinF, 2>},
};

BlockFn arithmetic_block(std::string_view name, DType dtype) { return find_block(kBlocks, name, dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace syncline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/graph/elementwise.h"
#include "ops/graph/leaf.h"
#include "ops/linalg/rows.h"
#include "ops/shape/broadcast.h"
#include "ops/shape/pads.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"

namespace syncline {
namespace {
HWY_EXPORT(arithmetic_block);

BlockFn block_of(std::string_view name, DType dtype) { return HWY_DYNAMIC_DISPATCH(arithmetic_block)(name, dtype); }

bool is_scalar(const Expr& e, double wanted) {
  double value = 0;
  return scalar_value(e, value) && value == wanted;
}

// x if it has the shape and dtype of the result; otherwise empty.
Expr keep(const Expr& x, const Meta& out) { return x.meta() == out ? x : Expr{}; }

// Avoids a dense gradient of a table or an explicit broadcast; otherwise empty.
template <class Self>
Expr cheaper(std::span<const Expr> in, const Meta& out) {
  if (const Expr rows = rewrite_rows(Self::kName, in)) return rows;
  Expr x, y;
  return drop_broadcasts(in, out, x, y) ? apply<Self>({x, y}) : Expr{};
}

struct Add : Numeric<Add, block_of> {
  static constexpr std::string_view kName = "add";
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_linear(args); }
  static Expr simplify(const Attrs&, std::span<const Expr> in, const Meta& out) {
    if (is_scalar(in[1], 0)) return keep(in[0], out);
    if (is_scalar(in[0], 0)) return keep(in[1], out);
    if (const Expr joined = joined_pads(in)) return joined;
    return cheaper<Add>(in, out);
  }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy) {
    return {unbroadcast(dy, y.input(0)), unbroadcast(dy, y.input(1))};
  }
};

struct Sub : Numeric<Sub, block_of> {
  static constexpr std::string_view kName = "sub";
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_linear(args); }
  static Expr simplify(const Attrs&, std::span<const Expr> in, const Meta& out) {
    if (is_scalar(in[1], 0)) return keep(in[0], out);
    return cheaper<Sub>(in, out);
  }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy) {
    return {unbroadcast(dy, y.input(0)), neg(unbroadcast(dy, y.input(1)))};
  }
};

struct Mul : Numeric<Mul, block_of> {
  static constexpr std::string_view kName = "mul";
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_scaling(args); }
  static Expr simplify(const Attrs&, std::span<const Expr> in, const Meta& out) {
    if (is_scalar(in[1], 1)) return keep(in[0], out);
    if (is_scalar(in[0], 1)) return keep(in[1], out);
    return cheaper<Mul>(in, out);
  }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy) {
    return {unbroadcast(dy * y.input(1), y.input(0)), unbroadcast(dy * y.input(0), y.input(1))};
  }
};

struct Div : Numeric<Div, block_of> {
  static constexpr std::string_view kName = "div";
  static Placed place(const Attrs&, const PlaceArgs& args) {
    // (a + b) / c = a / c + b / c for floating numbers; the divisor must be replicated.
    const bool scales = args.at[0].is_partial() && is_floating(args.in[0].dtype);
    return scales ? place_scaling(args) : place_elementwise(args);
  }
  static Expr simplify(const Attrs&, std::span<const Expr> in, const Meta& out) {
    if (is_scalar(in[1], 1)) return keep(in[0], out);
    return cheaper<Div>(in, out);
  }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy) {
    const Expr dx = dy / y.input(1);
    return {unbroadcast(dx, y.input(0)), neg(unbroadcast(dx * y, y.input(1)))};
  }
};

// The gradient goes to the chosen operand, and to x if they are equal, as in TensorFlow.
std::vector<Expr> choose_grad(const Expr& x_wins, const Expr& y, const Expr& dy) {
  const Expr zero = scalar_like(0, dy);
  return {unbroadcast(select(x_wins, dy, zero), y.input(0)), unbroadcast(select(x_wins, zero, dy), y.input(1))};
}

struct Maximum : Numeric<Maximum, block_of> {
  static constexpr std::string_view kName = "maximum";
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy) {
    return choose_grad(greater_equal(y.input(0), y.input(1)), y, dy);
  }
};

struct Minimum : Numeric<Minimum, block_of> {
  static constexpr std::string_view kName = "minimum";
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy) {
    return choose_grad(less_equal(y.input(0), y.input(1)), y, dy);
  }
};

struct Pow : Numeric<Pow, block_of> {
  static constexpr std::string_view kName = "pow";
  // A negative integer exponent throws.
  static bool may_throw(const Attrs&, std::span<const Meta> in) {
    return is_integer(in[1].dtype) && in[1].dtype != DType::kUint8;
  }
  static Expr simplify(const Attrs&, std::span<const Expr> in, const Meta& out) {
    if (is_scalar(in[1], 1)) return keep(in[0], out);
    if (in[0].meta() != out) return {};
    if (is_scalar(in[1], 2)) return square(in[0]);
    if (is_scalar(in[1], 3)) return square(in[0]) * in[0];
    return {};
  }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy) {
    const Expr &x = y.input(0), &a = y.input(1);
    // log(x) counts as 0 for x <= 0, so that the exponent's gradient is not NaN.
    const Expr log_x = select(greater(x, scalar_like(0, x)), log(x), scalar_like(0, x));
    return {unbroadcast(dy * a * pow(x, a - 1.0), x), unbroadcast(dy * y * log_x, a)};
  }
};

struct Neg : Numeric<Neg, block_of> {
  static constexpr std::string_view kName = "neg";
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_linear(args); }
  static Expr simplify(const Attrs&, std::span<const Expr> in, const Meta&) { return rewrite_rows(kName, in); }
  static std::vector<Expr> grad(const Attrs&, const Expr&, const Expr& dy) { return {neg(dy)}; }
};

SYNCLINE_REGISTER_OP(Add)
SYNCLINE_REGISTER_OP(Sub)
SYNCLINE_REGISTER_OP(Mul)
SYNCLINE_REGISTER_OP(Div)
SYNCLINE_REGISTER_OP(Maximum)
SYNCLINE_REGISTER_OP(Minimum)
SYNCLINE_REGISTER_OP(Pow)
SYNCLINE_REGISTER_OP(Neg)

}  // namespace

Expr add(const Expr& x, const Expr& y) { return apply<Add>({x, y}); }
Expr sub(const Expr& x, const Expr& y) { return apply<Sub>({x, y}); }
Expr mul(const Expr& x, const Expr& y) {
  const bool truths = x.dtype() == DType::kBool && y.dtype() == DType::kBool;
  return truths ? logical_and(x, y) : apply<Mul>({x, y});
}
Expr div(const Expr& x, const Expr& y) {
  if (!is_integer(x.dtype()) || x.dtype() != y.dtype()) return apply<Div>({x, y});
  const DType quotient = size_of(x.dtype()) < 4 ? DType::kFloat32 : DType::kFloat64;
  return apply<Div>({cast(x, quotient), cast(y, quotient)});
}
Expr quotient(const Expr& x, const Expr& y) { return apply<Div>({x, y}); }
Expr neg(const Expr& x) { return apply<Neg>({x}); }
Expr maximum(const Expr& x, const Expr& y) { return apply<Maximum>({x, y}); }
Expr minimum(const Expr& x, const Expr& y) { return apply<Minimum>({x, y}); }
Expr pow(const Expr& x, const Expr& a) { return apply<Pow>({x, a}); }
Expr pow(const Expr& x, double a) { return pow(x, scalar_like(a, x)); }
Expr scalar_like(double value, const Expr& x) {
  if (!is_integer(x.dtype())) return scalar(value, x.dtype());
  if (!std::isfinite(value) || value != std::trunc(value))
    fail<DTypeError>("the number ", value, " cannot be used with a tensor of ", x.dtype(),
                     "; cast the tensor to a floating dtype first");
  const double wrapped =
      with_number(x.dtype(), [&]<class T>(T) { return convert<double>(convert<T>(convert<std::int64_t>(value))); });
  return scalar(wrapped, x.dtype());
}

}  // namespace syncline
#endif  // HWY_ONCE
