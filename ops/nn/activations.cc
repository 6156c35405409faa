// The ops relu, elu and softsign, and the activations that consist of other ops.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/activations.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "ops/kernels/fused/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syncline {
namespace HWY_NAMESPACE {

struct ReluF {
  template <class T>
  T operator()(T x) const {
    return x < T{} ? T{} : x;  // false for NaN, so NaN stays NaN
  }
};

struct EluF {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D d, V x) const {
    const auto zero = hn::Zero(d);
    const V below = hn::Expm1(d, hn::Min(x, zero));
    return hn::IfThenElse(hn::Or(hn::Gt(x, zero), hn::IsNaN(x)), x, below);
  }
};

struct SoftsignF {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D d, V x) const {
    return hn::Div(x, hn::Add(hn::Abs(x), hn::Set(d, 1)));
  }
};

constexpr NamedBlock kBlocks[] = {{"relu", &plain_block_of<ReluF, 1>},
                                  {"elu", &floating_block<1, EluF>},
                                  {"softsign", &floating_block<1, SoftsignF>}};

BlockFn activation_block(std::string_view name, DType dtype) { return find_block(kBlocks, name, dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace syncline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/graph/elementwise.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"

namespace syncline {
namespace {
HWY_EXPORT(activation_block);

BlockFn block_of(std::string_view name, DType dtype) { return HWY_DYNAMIC_DISPATCH(activation_block)(name, dtype); }

Expr positive(const Expr& x) { return greater(x, scalar_like(0, x)); }

struct Relu : Numeric<Relu, block_of> {
  static constexpr std::string_view kName = "relu";
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy) {
    return {select(positive(y), dy, scalar_like(0, dy))};
  }
};

struct Elu : Floating<Elu, block_of> {
  static constexpr std::string_view kName = "elu";
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy) {
    return {select(less(y, scalar_like(0, y)), dy * (y + 1.0), dy)};
  }
};

struct Softsign : Floating<Softsign, block_of> {
  static constexpr std::string_view kName = "softsign";
  // The quotient rule would subtract nearly equal numbers for large x and give NaN for infinite x.
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy) {
    return {dy / square(abs(y.input(0)) + 1.0)};
  }
};

SYNCLINE_REGISTER_OP(Relu)
SYNCLINE_REGISTER_OP(Elu)
SYNCLINE_REGISTER_OP(Softsign)

}  // namespace

Expr relu(const Expr& x, const ReluOptions& options) {
  const auto& [alpha, max_value, threshold] = options;
  if (max_value && *max_value < 0) fail<ValueError>("relu: max_value is ", *max_value, "; give 0 or more");
  // The gradient at 0 is alpha, as in TensorFlow; the other forms have 0 there.
  if (alpha != 0 && threshold == 0 && !max_value) return select(positive(x), x, x * alpha);
  // `less` is false for NaN, so NaN stays NaN; maximum's gradient then goes to the bound: 0 for x, as in relu.
  const Expr bound = scalar_like(threshold, x);
  Expr y = threshold == 0 ? apply<Relu>({x}) : select(less(x, bound), scalar_like(0, x), maximum(x, bound));
  if (max_value) y = clip(y, threshold < 0 ? std::optional(0.0) : std::nullopt, *max_value);
  // A difference of unsigned integers must not be negative.
  if (alpha != 0) y = y - (is_integer(x.dtype()) ? maximum(x, bound) - x : apply<Relu>({threshold - x})) * alpha;
  return y;
}

Expr elu(const Expr& x, double alpha) {
  const Expr y = apply<Elu>({x});
  return alpha == 1 ? y : select(positive(x), y, y * alpha);
}

Expr softsign(const Expr& x) { return is_integer(x.dtype()) ? x / (abs(x) + 1.0) : apply<Softsign>({x}); }
Expr hard_sigmoid(const Expr& x) { return clip(x * 0.2 + 0.5, 0.0, 1.0); }

}  // namespace syncline
#endif  // HWY_ONCE
