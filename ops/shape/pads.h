// What other ops know of `pad`: sums of pads (the gradient of splitting a tensor into parts), and padded images.
#pragma once

#include <cstdint>
#include <span>

#include "syncline/expr.h"

namespace syncline {

// For the simplify of add: the concatenation of all terms if they are pads that fill one axis side by side; otherwise
// empty.
Expr joined_pads(std::span<const Expr> in);

bool is_pad(const Expr& e);
// The zeros before and after the operand of a pad on each axis. Valid while the pad's node lives.
std::span<const std::int64_t> zeros_before(const Expr& pad);
std::span<const std::int64_t> zeros_after(const Expr& pad);

}  // namespace syncline
