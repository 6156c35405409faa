// Strided views of the operands of a concatenation: a plan can compute the operands in place.
#pragma once

#include <span>
#include <vector>

#include "ops/graph/op.h"

namespace syncline {

// One strided view per operand if `joined` is a concatenation, otherwise none. `in`: the operands' local metas, sizes
// known.
std::vector<StridedView> joined_views(const Expr& joined, std::span<const Meta> in);

}  // namespace syncline
