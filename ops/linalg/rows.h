// Gradients of tables, kept as rows and indices where possible.
#pragma once

#include <span>
#include <string_view>

#include "syncline/expr.h"

namespace syncline {

// For the simplify of add, sub, mul, div and neg: an equal expression without a dense gradient of a table, or empty.
// Scaling acts on the rows; adding two gradients joins their rows; subtracting from a table changes only these rows.
Expr rewrite_rows(std::string_view op, std::span<const Expr> in);

}  // namespace syncline
