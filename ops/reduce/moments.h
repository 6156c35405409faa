// The mean and the variance; of float32 and float16 values from one pass over the operand.
#pragma once

#include "syncline/axes.h"
#include "syncline/expr.h"

namespace syncline {

// In x's dtype (floatx for integers), with the reduced axes kept. The variance is the biased one.
struct Moments {
  Expr mean, variance;
};
Moments moments_of(const Expr& x, const Axes& axes);

}  // namespace syncline
