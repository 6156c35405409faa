// Finds the values that determine shapes.
#pragma once

#include <vector>

#include "syncline/expr.h"

namespace syncline {

// Returns the inputs of `node` that are sizes (syncline/dims.h), for the node itself or for a node within its bodies. A
// plan must know their values.
std::vector<Expr> sizes_read_by(const Node& node);

}  // namespace syncline
