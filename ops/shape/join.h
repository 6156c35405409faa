// Where joined tensors lie in what they are joined to: a plan can have them computed there.
#pragma once

#include <span>
#include <vector>

#include "ops/graph/op.h"

namespace syncline {

// One window an operand if `joined` is a concatenation, otherwise none. `in`: the operands' local metas, known.
std::vector<StridedWindow> joined_windows(const Expr& joined, std::span<const Meta> in);

}  // namespace syncline
