// Range-checked indices: kernels that use them, and their gradients, need no check of their own.
#pragma once

#include <string>

#include "syncline/dims.h"
#include "syncline/expr.h"

namespace syncline {

// `indices`, int32 or int64. A step throws ValueError, which names `op`, for an index outside [0, size).
Expr checked_index(std::string op, const Expr& indices, const Dim& size);

}  // namespace syncline
