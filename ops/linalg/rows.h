// Gradients of tables, kept as rows and indices where possible.
#pragma once

#include <span>
#include <string_view>

#include "syncline/expr.h"

namespace syncline {

// For the simplify of add, sub, mul, div and neg: an equal expression without a dense gradient of a table, or empty.
// Scaling acts on the rows; adding two gradients joins their rows; subtracting from a table changes only these rows.
Expr rewrite_rows(std::string_view op, std::span<const Expr> in);

// For a whole plan: if one user needs a table's gradient dense (the square in Adam's second moment), users that pass
// over the whole table anyway (the first moment's decay) take the dense gradient too. This saves a pass over the rows.
std::vector<Expr> share_dense_rows(std::span<const Expr> roots);

}  // namespace syncline
