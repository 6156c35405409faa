// Sums of pads, the gradient of splitting a tensor into parts.
#pragma once

#include <span>

#include "syncline/expr.h"

namespace syncline {

// For the simplify of add: the concatenation of all terms if they are pads that fill one axis side by side; otherwise
// empty.
Expr joined_pads(std::span<const Expr> in);

}  // namespace syncline
