// BroadcastLike: the gradient of a sum, and what elementwise ops do to avoid computing it.
#pragma once

#include "ops/graph/op.h"

namespace syncline {

// For the simplify of elementwise ops of two operands, which broadcast anyway: `in` with operands that are only
// broadcast values replaced by what they were broadcast from, where the result's shape stays. True if there was one.
bool drop_broadcasts(std::span<const Expr> in, const Meta& out, Expr& a, Expr& b);

}  // namespace syncline
