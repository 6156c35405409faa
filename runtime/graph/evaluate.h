// evaluate: computes a node with constant inputs, for constant folding. Throws what the op's kernel throws.
#pragma once

#include "syncline/array.h"
#include "syncline/expr.h"

namespace syncline {

// `e` is a constant, a fill, or a node with one output over these.
Array evaluate(const Expr& e);

}  // namespace syncline
