// A rewrite of a whole graph: if one user needs a table's gradient dense (the square in Adam's second moment), users
// that pass over the whole table anyway (the first moment's decay) take the dense gradient too. This saves a pass over
// the rows. ops/linalg/rows.cc has the rewrites of single ops.
#pragma once

#include <span>
#include <vector>

#include "syncline/expr.h"

namespace syncline {

std::vector<Expr> share_dense_rows(std::span<const Expr> roots);

}  // namespace syncline
