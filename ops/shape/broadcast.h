// BroadcastLike, the gradient of sum, and its removal before elementwise ops.
#pragma once

#include "ops/graph/op.h"

namespace syncline {

// For the simplify of elementwise ops of two operands, which broadcast by themselves. Sets a and b to `in`, with a
// BroadcastLike replaced by its operand where the result's shape stays the same. True if it replaced one.
bool drop_broadcasts(std::span<const Expr> in, const Meta& out, Expr& a, Expr& b);

}  // namespace syncline
