// Products with a packed matrix (ops/kernels/product/packed_product.h). Plans use them where a loop multiplies by the
// same matrix in every iteration. They have no gradient: dot is differentiated before.
#pragma once

#include "syncline/expr.h"

namespace syncline {

// Packs w (k, n), or (n, k) if `transpose`, into panels of columns: (panels, k, columns of a panel). Floating dtypes.
Expr pack_matrix(const Expr& w, bool transpose = false);
// x (..., k) times the packed matrix of n columns: (..., n).
Expr dot_packed(const Expr& x, const Expr& packed, std::int64_t n);

}  // namespace syncline
