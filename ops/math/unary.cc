// Elementwise functions of one operand: |x|, sqrt, exp, log, rounding, sign, sine, cosine, square, sigmoid, tanh,
// softplus.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/math/unary.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include <hwy/highway.h>

#include <cmath>

#include "base/convert.h"
#include "ops/kernels/fused/curves-inl.h"
#include "ops/kernels/fused/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syncline {
namespace HWY_NAMESPACE {

constexpr int kLargestAngle = 39000;  // Highway's sine and cosine are accurate up to here

struct SquareF {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(wrapping(x) * wrapping(x));
  }
};
struct AbsF {
  template <class T>
  T operator()(T x) const {
    return x <= T{} ? static_cast<T>(T{} - wrapping(x)) : x;
  }
};
struct SignF {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(x != x ? x : static_cast<T>((x > T{}) - (x < T{})));
  }
};
struct ExpF {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D d, V x) const {
    return exp_of(d, x);
  }
};
struct RoundF {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D, V x) const {
    return hn::Round(x);
  }
};

// Replaces y by f(x) in lanes where x is large, infinite or NaN. A lane's result depends on its x alone.
template <class D, class V, class F>
HWY_NOINLINE HWY_ATTR V with_large(D d, V x, V y, F f) {
  using T = hn::TFromD<D>;
  alignas(64) T from[HWY_MAX_BYTES / sizeof(T)], to[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(x, d, from);
  hn::Store(y, d, to);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i)
    if (!(std::abs(from[i]) <= T(kLargestAngle))) to[i] = f(from[i]);
  return hn::Load(d, to);
}

// Highway's sine and cosine reduce only small arguments; the C library's functions reduce all arguments.
struct SinF {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D d, V x) const {
    const V y = hn::Sin(d, x);
    if (HWY_LIKELY(hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, hn::TFromD<D>(kLargestAngle)))))) return y;
    return with_large(d, x, y, [](auto lane) { return std::sin(lane); });
  }
};

struct CosF {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D d, V x) const {
    const V y = hn::Cos(d, x);
    if (HWY_LIKELY(hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, hn::TFromD<D>(kLargestAngle)))))) return y;
    return with_large(d, x, y, [](auto lane) { return std::cos(lane); });
  }
};

struct LogF {
  // Highway's logarithm is correct for positive finite numbers only: sets the results for 0, infinity, negatives, NaN.
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D d, V x) const {
    const auto zero = hn::Zero(d), inf = hn::Inf(d);
    V y = hn::Log(d, x);
    y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(inf), y);
    y = hn::IfThenElse(hn::Eq(x, inf), inf, y);
    return hn::IfThenElse(hn::Or(hn::Lt(x, zero), hn::IsNaN(x)), hn::NaN(d), y);
  }
};

struct SoftplusF {
  // max(x, 0) + log1p(exp(-|x|)): no overflow on either side.
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D d, V x) const {
    return hn::Add(hn::Max(x, hn::Zero(d)), hn::Log1p(d, exp_of(d, hn::Neg(hn::Abs(x)))));
  }
};

constexpr NamedBlock kBlocks[] = {
    {"square", &plain_block_of<SquareF, 1>},   {"abs", &plain_block_of<AbsF, 1>},
    {"sign", &plain_block_of<SignF, 1>},       {"sqrt", &floating_block<1, SqrtF>},
    {"exp", &floating_block<1, ExpF>},         {"log", &floating_block<1, LogF>},
    {"round", &floating_block<1, RoundF>},     {"sin", &floating_block<1, SinF>},
    {"cos", &floating_block<1, CosF>},         {"tanh", &floating_block<1, TanhF>},
    {"sigmoid", &floating_block<1, SigmoidF>}, {"softplus", &floating_block<1, SoftplusF>},
};

BlockFn unary_block(std::string_view name, DType dtype) { return find_block(kBlocks, name, dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace syncline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/graph/elementwise.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"

namespace syncline {
namespace {
HWY_EXPORT(unary_block);

BlockFn block_of(std::string_view name, DType dtype) { return HWY_DYNAMIC_DISPATCH(unary_block)(name, dtype); }

using Grads = std::vector<Expr>;

struct Square : Numeric<Square, block_of> {
  static constexpr std::string_view kName = "square";
  static Grads grad(const NoAttrs&, const Expr& y, const Expr& dy) { return {dy * (y.input(0) * 2.0)}; }
};
struct Abs : Numeric<Abs, block_of> {
  static constexpr std::string_view kName = "abs";
  static Grads grad(const NoAttrs&, const Expr& y, const Expr& dy) { return {dy * sign(y.input(0))}; }
};
struct Sign : Numeric<Sign, block_of> {
  static constexpr std::string_view kName = "sign";
  static Grads grad(const NoAttrs&, const Expr& y, const Expr&) { return {fill_like(y, 0)}; }
};
struct Sqrt : Floating<Sqrt, block_of> {
  static constexpr std::string_view kName = "sqrt";
  // 0 for negative x and NaN, as for a clipped x. Dividing by 1 there keeps second derivatives finite.
  static Grads grad(const NoAttrs&, const Expr& y, const Expr& dy) {
    const Expr counts = greater_equal(y.input(0), scalar_like(0, y));
    return {select(counts, dy, scalar_like(0, y)) * 0.5 / select(counts, y, scalar_like(1, y))};
  }
};
struct Exp : Floating<Exp, block_of> {
  static constexpr std::string_view kName = "exp";
  static Grads grad(const NoAttrs&, const Expr& y, const Expr& dy) { return {dy * y}; }
};
struct Log : Floating<Log, block_of> {
  static constexpr std::string_view kName = "log";
  static Grads grad(const NoAttrs&, const Expr& y, const Expr& dy) { return {dy / y.input(0)}; }
};
struct Round : Floating<Round, block_of> {
  static constexpr std::string_view kName = "round";
  static constexpr NoGradient grad{"rounding is piecewise constant"};
};
struct Sin : Floating<Sin, block_of> {
  static constexpr std::string_view kName = "sin";
  static Grads grad(const NoAttrs&, const Expr& y, const Expr& dy) { return {dy * cos(y.input(0))}; }
};
struct Cos : Floating<Cos, block_of> {
  static constexpr std::string_view kName = "cos";
  static Grads grad(const NoAttrs&, const Expr& y, const Expr& dy) { return {neg(dy * sin(y.input(0)))}; }
};
struct Tanh : Floating<Tanh, block_of> {
  static constexpr std::string_view kName = "tanh";
  static Grads grad(const NoAttrs&, const Expr& y, const Expr& dy) { return {tanh_gradient(y, dy)}; }
};
struct Sigmoid : Floating<Sigmoid, block_of> {
  static constexpr std::string_view kName = "sigmoid";
  static Grads grad(const NoAttrs&, const Expr& y, const Expr& dy) { return {sigmoid_gradient(y, dy)}; }
};
struct Softplus : Floating<Softplus, block_of> {
  static constexpr std::string_view kName = "softplus";
  static Grads grad(const NoAttrs&, const Expr& y, const Expr& dy) { return {dy * sigmoid(y.input(0))}; }
};

SYNCLINE_REGISTER_OP(Square)
SYNCLINE_REGISTER_OP(Abs)
SYNCLINE_REGISTER_OP(Sign)
SYNCLINE_REGISTER_OP(Sqrt)
SYNCLINE_REGISTER_OP(Exp)
SYNCLINE_REGISTER_OP(Log)
SYNCLINE_REGISTER_OP(Round)
SYNCLINE_REGISTER_OP(Sin)
SYNCLINE_REGISTER_OP(Cos)
SYNCLINE_REGISTER_OP(Tanh)
SYNCLINE_REGISTER_OP(Sigmoid)
SYNCLINE_REGISTER_OP(Softplus)

}  // namespace

Expr square(const Expr& x) { return apply<Square>({x}); }
Expr abs(const Expr& x) { return apply<Abs>({x}); }
Expr sign(const Expr& x) { return apply<Sign>({x}); }
Expr sqrt(const Expr& x) { return apply<Sqrt>({x}); }
Expr exp(const Expr& x) { return apply<Exp>({x}); }
Expr log(const Expr& x) { return apply<Log>({x}); }
Expr round(const Expr& x) { return is_integer(x.dtype()) ? x : apply<Round>({x}); }
Expr sin(const Expr& x) { return apply<Sin>({x}); }
Expr cos(const Expr& x) { return apply<Cos>({x}); }
Expr tanh(const Expr& x) { return apply<Tanh>({x}); }
Expr sigmoid(const Expr& x) { return apply<Sigmoid>({x}); }
Expr softplus(const Expr& x) { return apply<Softplus>({x}); }

}  // namespace syncline
#endif  // HWY_ONCE
