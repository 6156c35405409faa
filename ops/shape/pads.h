// Sums of padded parts, which is what the gradient of cutting a tensor into parts is.
#pragma once

#include <span>

#include "syncline/expr.h"

namespace syncline {

// For the simplify of add: if all that is added up are pads that fill an axis side by side, their concatenation;
// otherwise empty.
Expr joined_pads(std::span<const Expr> in);

}  // namespace syncline
