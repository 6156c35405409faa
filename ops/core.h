// Tensors made from other tensors without arithmetic: fills, identity, shapes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/array.h"
#include "ops/dims.h"
#include "ops/expr.h"

namespace syncline {

// A tensor of one value.
Expr fill(const Dims& shape, double value, DType dtype = DType::kFloat32);
// The same with the shape of x, which may be unknown yet. dtype: x's unless given.
Expr fill_like(const Expr& x, double value);
Expr fill_like(const Expr& x, double value, DType dtype);
inline Expr zeros_like(const Expr& x) { return fill_like(x, 0); }
inline Expr ones_like(const Expr& x) { return fill_like(x, 1); }

Expr identity(const Expr& x);
// The value of x; gradients() does not look through it.
Expr stop_gradient(const Expr& x);

// The global shape of x as an int32 vector of ndim(x) elements.
Expr shape(const Expr& x);
// How many elements x has along `axes` (all axes if empty), as a scalar of the given dtype. The global number.
Expr count(const Expr& x, std::vector<int> axes, DType dtype);

}  // namespace syncline
