// hoist_from_body: moves computations whose operands are equal in every iteration out of a loop's body.
#pragma once

#include <vector>

#include "ops/control/loop.h"

namespace syncline {

// Rewrites the body's nodes with their ops' `hoist`. Operands that depend only on captures become new captures:
// appends them to `captured` and their leaves to body.captures.
void hoist_from_body(LoopBody& body, std::vector<Expr>& captured);

}  // namespace syncline
