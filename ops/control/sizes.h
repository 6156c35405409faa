// Which values shapes follow from.
#pragma once

#include <vector>

#include "syncline/expr.h"

namespace syncline {

// The inputs of a node that are numbers in the sense of syncline/dims.h, for the node itself or for one within its
// bodies: a plan has to know them.
std::vector<Expr> sizes_read_by(const Node& node);

}  // namespace syncline
