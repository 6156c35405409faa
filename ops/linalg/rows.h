// Gradients of tables, carried as rows and indices for as long as it goes.
#pragma once

#include <span>
#include <string_view>

#include "syncline/expr.h"

namespace syncline {

// For the simplify of add, sub, mul, div and neg: the same value without a dense gradient of a table, or empty. Scaling
// acts on the rows; adding two joins them; subtracting from a table touches only their rows.
Expr rewrite_rows(std::string_view op, std::span<const Expr> in);

// For a whole plan: where a formula needs a table's gradient dense (the square in Adam's second moment), so do its
// other users that go through the whole table anyway (its first moment's decay): one pass fewer than rows beside it.
std::vector<Expr> share_dense_rows(std::span<const Expr> roots);

}  // namespace syncline
