// Computes one node whose inputs are constants: constant folding.
#pragma once

#include "syncline/array.h"
#include "syncline/expr.h"

namespace syncline {

// The value of a constant, of a fill, or of a node with one output over such.
Array evaluate(const Expr& e);

}  // namespace syncline
