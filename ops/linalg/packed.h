// Products with a matrix packed beforehand (ops/kernels/product/packed_product.h). Plans use them where a loop
// multiplies by the same matrix in every turn; gradients are taken before, of dot.
#pragma once

#include "syncline/expr.h"

namespace syncline {

// w (k, n), or its transpose if w is (n, k): panels of columns, (panels, k, columns of a panel). Floating dtypes.
Expr pack_matrix(const Expr& w, bool transpose = false);
// x (..., k) times the packed matrix of n columns: (..., n).
Expr dot_packed(const Expr& x, const Expr& packed, std::int64_t n);

}  // namespace syncline
