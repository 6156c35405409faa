// sigmoid_gradient and tanh_gradient: one pass instead of three, which recurrent layers run for each gate in each
// iteration.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/math/curve_gradients.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include <hwy/highway.h>

#include "ops/kernels/fused/curves-inl.h"
#include "ops/kernels/fused/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syncline {
namespace HWY_NAMESPACE {

constexpr NamedBlock kBlocks[] = {{"sigmoid_gradient", &floating_block<2, SigmoidGradientF>},
                                  {"tanh_gradient", &floating_block<2, TanhGradientF>}};

BlockFn curve_gradient_block(std::string_view name, DType dtype) { return find_block(kBlocks, name, dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace syncline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/graph/elementwise.h"
#include "syncline/backend/math.h"

namespace syncline {
namespace {
HWY_EXPORT(curve_gradient_block);

BlockFn block_of(std::string_view name, DType dtype) { return HWY_DYNAMIC_DISPATCH(curve_gradient_block)(name, dtype); }

// Inputs: y, the curve's value, and dy.
struct SigmoidGradient : Floating<SigmoidGradient, block_of> {  // dy y (1 - y)
  static constexpr std::string_view kName = "sigmoid_gradient";
  static std::vector<Expr> grad(const NoAttrs&, const Expr& e, const Expr& d) {
    const Expr &y = e.input(0), &dy = e.input(1);
    return {d * dy * (1.0 - y * 2.0), sigmoid_gradient(y, d)};
  }
};

struct TanhGradient : Floating<TanhGradient, block_of> {  // dy (1 - y^2)
  static constexpr std::string_view kName = "tanh_gradient";
  static std::vector<Expr> grad(const NoAttrs&, const Expr& e, const Expr& d) {
    const Expr &y = e.input(0), &dy = e.input(1);
    return {d * dy * y * -2.0, tanh_gradient(y, d)};
  }
};

SYNCLINE_REGISTER_OP(SigmoidGradient)
SYNCLINE_REGISTER_OP(TanhGradient)

}  // namespace

Expr sigmoid_gradient(const Expr& y, const Expr& dy) { return apply<SigmoidGradient>({y, dy}); }
Expr tanh_gradient(const Expr& y, const Expr& dy) { return apply<TanhGradient>({y, dy}); }

}  // namespace syncline
#endif  // HWY_ONCE
