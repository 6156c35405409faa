// Functions shared by single passes (ops/math) and chains (chain.cc), so both give the same bits.
#if defined(SYNCLINE_CURVES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNCLINE_CURVES_INL_H_
#undef SYNCLINE_CURVES_INL_H_
#else
#define SYNCLINE_CURVES_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "ops/kernels/fused/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syncline {
namespace HWY_NAMESPACE {

struct SqrtF {
  // x <= 0 gives 0. sqrt(-0) must not be -0: the gradient there is +infinity.
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D d, V x) const {
    return hn::Sqrt(hn::IfThenElse(hn::Le(x, hn::Zero(d)), hn::Zero(d), x));
  }
};

struct TanhF {
  // float32: x times a quotient of two polynomials in x^2, fitted to tanh(x) / x on [-9, 9] with relative error 2e-8.
  // Beyond that range tanh rounds to +-1.
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D d, V x) const {
    if constexpr (sizeof(hn::TFromD<D>) == sizeof(double)) {
      return hn::Tanh(d, x);
    } else {
      const auto one = hn::Set(d, 1.0f), limit = hn::Set(d, 9.0f);
      const V near = hn::Max(hn::Neg(limit), hn::Min(limit, x)), z = hn::Mul(near, near);
      V p = hn::MulAdd(hn::Set(d, 1.33536937e-8f), z, hn::Set(d, 2.06083898e-5f));
      p = hn::MulAdd(p, z, hn::Set(d, 3.49554644e-3f));
      p = hn::MulAdd(p, z, hn::Set(d, 1.33809907e-1f));
      p = hn::MulAdd(p, z, hn::Set(d, 0.999999979f));
      V q = hn::MulAdd(hn::Set(d, 7.77616368e-7f), z, hn::Set(d, 3.28556635e-4f));
      q = hn::MulAdd(q, z, hn::Set(d, 2.58768241e-2f));
      q = hn::MulAdd(q, z, hn::Set(d, 4.67143063e-1f));
      q = hn::MulAdd(q, z, one);
      const V y = hn::Max(hn::Neg(one), hn::Min(one, hn::Div(hn::Mul(near, p), q)));
      return hn::IfThenElse(hn::IsNaN(x), x, y);
    }
  }
};

struct SigmoidF {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D d, V x) const {
    const auto one = hn::Set(d, 1);
    return hn::Div(one, hn::Add(one, exp_of(d, hn::Neg(x))));
  }
};

struct SigmoidGradientF {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D, V y, V dy) const {
    return hn::Mul(dy, hn::NegMulAdd(y, y, y));
  }
};

struct TanhGradientF {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D, V y, V dy) const {
    return hn::NegMulAdd(hn::Mul(dy, y), y, dy);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace syncline
HWY_AFTER_NAMESPACE();

#endif  // SYNCLINE_CURVES_INL_H_
