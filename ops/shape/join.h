// The operands of a concatenation: strided views of them, so that a plan can compute them in place, and slices.
#pragma once

#include <span>
#include <vector>

#include "ops/graph/op.h"

namespace syncline {

// One strided view per operand if `joined` is a concatenation, otherwise none. `in`: the operands' local metas, sizes
// known.
std::vector<StridedView> joined_views(const Expr& joined, std::span<const Meta> in);

// The operand of the concatenation `joined` that is its slice [start, start + size). Empty if there is none.
Expr joined_part(const Expr& joined, std::span<const std::int64_t> start, const Shape& size);

}  // namespace syncline
