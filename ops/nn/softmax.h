// What other ops need to know of softmax.
#pragma once

#include "syncline/expr.h"

namespace syncline {

// The operand of a softmax along this axis (from 0); empty for other expressions.
Expr logits_of_softmax(const Expr& output, int axis);

}  // namespace syncline
