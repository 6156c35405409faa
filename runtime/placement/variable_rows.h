// The rows of shared variables (syncline/backend/variable.h): which values a step computes for the rows that a rank
// owns, instead of whole on every rank. Pure functions.
#pragma once

#include <span>

#include "ops/graph/placement.h"
#include "ops/graph/value_map.h"
#include "syncline/expr.h"

namespace syncline {

// The shape in which a variable is divided by rows: leading axes become one, until there are many rows. The bytes stay
// the same. `shape` has at least one axis.
Shape rows_of(const Shape& shape);

// The number of leading axes that rows_of joins.
int row_axes(const Shape& shape);

// True if an elementwise node computes rows of its value from the same rows of its operands of equal shape and from
// operands without rows.
bool runs_by_rows(const Node& node);

struct RowValues {
  ValueSet wanted;    // a step needs them by rows only: roots wanted by rows, and operands that only `computed` read
  ValueSet computed;  // those of them that are elementwise, and so are computed by rows
};
RowValues values_by_rows(std::span<const Expr> roots, std::span<const Placement> wanted);

}  // namespace syncline
