// Indices that are looked at once: what reads and writes by them needs no check of its own, so neither does a gradient.
#pragma once

#include <string>

#include "syncline/dims.h"
#include "syncline/expr.h"

namespace syncline {

// `indices`, int32 or int64. A step throws ValueError, which names `op`, unless all of them are in [0, size).
Expr checked_index(std::string op, const Expr& indices, const Dim& size);

}  // namespace syncline
