// max, min, prod, any and all.
#include "ops/reduce/kernel.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

// The base of reductions other than sums.
template <class Self>
struct Reduction : ReductionOp<Self> {
  using Attrs = ReduceAttrs;
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    if ((in[0].dtype == DType::kBool) != Self::kTruth)
      fail<DTypeError>(Self::kName, ": x is ", in[0].dtype,
                       Self::kTruth ? "; cast it to bool first" : "; use any or all, or cast it to a number first");
    return {in[0].dtype, reduced_shape(in[0].shape, axis_mask(Self::kName, a.axes, in[0].shape.ndim()), a.keepdims)};
  }
  static Placed place(const Attrs& a, const PlaceArgs& args) {
    return place_reduction(Self::kName, a, args, Self::kAcross);
  }
};

// Elements that tie share the gradient equally, as in TensorFlow.
std::vector<Expr> share_among_ties(const ReduceAttrs& a, const Expr& y, const Expr& dy) {
  const Expr& x = y.input(0);
  const Expr ties = cast(equal(x, with_kept_axes(y, a.axes, x.ndim(), a.keepdims)), x.dtype());
  return {with_kept_axes(dy, a.axes, x.ndim(), a.keepdims) * ties / sum(ties, a.axes, /*keepdims=*/true)};
}

struct Max : Reduction<Max> {
  static constexpr std::string_view kName = "max";
  static constexpr Placement kAcross = Placement::largest();
  static constexpr bool kTruth = false;
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) { return share_among_ties(a, y, dy); }
};

struct Min : Reduction<Min> {
  static constexpr std::string_view kName = "min";
  static constexpr Placement kAcross = Placement::smallest();
  static constexpr bool kTruth = false;
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) { return share_among_ties(a, y, dy); }
};

// Reduces one axis; `prod` chains these ops.
struct Prod : Reduction<Prod> {
  static constexpr std::string_view kName = "prod";
  static constexpr Placement kAcross = Placement::replicated();
  static constexpr bool kTruth = false;
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    // Multiplies the products of the elements before and after each one: correct for zeros in x.
    const Expr& x = y.input(0);
    const ScanOptions before{.exclusive = true}, behind{.exclusive = true, .reverse = true};
    const Expr others = cumprod(x, a.axes[0], before) * cumprod(x, a.axes[0], behind);
    return {with_kept_axes(dy, a.axes, x.ndim(), a.keepdims) * others};
  }
};

struct Any : Reduction<Any> {
  static constexpr std::string_view kName = "any";
  static constexpr Placement kAcross = Placement::largest();
  static constexpr bool kTruth = true;
  static constexpr NoGradient grad{"a truth value is piecewise constant"};
};

struct All : Reduction<All> {
  static constexpr std::string_view kName = "all";
  static constexpr Placement kAcross = Placement::smallest();
  static constexpr bool kTruth = true;
  static constexpr NoGradient grad{"a truth value is piecewise constant"};
};

SYNCLINE_REGISTER_OP(Max)
SYNCLINE_REGISTER_OP(Min)
SYNCLINE_REGISTER_OP(Prod)
SYNCLINE_REGISTER_OP(Any)
SYNCLINE_REGISTER_OP(All)

}  // namespace

Expr max(const Expr& x, Axes axes, bool keepdims) { return apply<Max>({x}, {axes.of(x.ndim()), keepdims}); }
Expr min(const Expr& x, Axes axes, bool keepdims) { return apply<Min>({x}, {axes.of(x.ndim()), keepdims}); }

Expr prod(const Expr& x, Axes axes, bool keepdims) {
  const AxisMask mask = axis_mask(Prod::kName, axes.of(x.ndim()), x.ndim());
  if (x.dtype() == DType::kBool) fail<DTypeError>("prod: x is bool; cast it to a number first");
  const bool half = x.dtype() == DType::kFloat16;  // round once, not after each axis
  Expr y = half ? cast(x, DType::kFloat32) : x;
  for (int axis = x.ndim() - 1; axis >= 0; --axis)
    if (mask[axis]) y = apply<Prod>({y}, {{axis}, keepdims});
  return half ? cast(y, DType::kFloat16) : y;
}

Expr any(const Expr& x, Axes axes, bool keepdims) {
  return apply<Any>({cast(x, DType::kBool)}, {axes.of(x.ndim()), keepdims});
}
Expr all(const Expr& x, Axes axes, bool keepdims) {
  return apply<All>({cast(x, DType::kBool)}, {axes.of(x.ndim()), keepdims});
}

}  // namespace syncline
