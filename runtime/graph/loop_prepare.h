// What a loop's body does with the same operands in every turn, done once before the loop.
#pragma once

#include <vector>

#include "ops/control/loop.h"

namespace syncline {

// Rewrites the body's nodes as their ops' `prepare` says. The parts that depend on captures alone become captures of
// their own: `captured` grows along with body.captures.
void prepare_body(LoopBody& body, std::vector<Expr>& captured);

}  // namespace syncline
