// Shared variables: under several ranks, the large variables of elementwise updates (weights and an optimizer's slots)
// have one copy in the memory of each node. A rank updates the rows that it owns, and reads all of them. With
// Strategy::splits_variables a node has its ranks' rows only of what steps use by rows, and the nodes exchange the new
// rows of the other variables. See syncline/backend/variable.h.
//
// Functions that take a Session are collective under a strategy, and throw what it throws.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ops/graph/placement.h"
#include "runtime/placement/strategy.h"
#include "syncline/backend/variable.h"

namespace syncline {

class Session;

// The placements of the updates' values, for Strategy::place: by rows for shared variables. Makes large
// variables shared whose new values are elementwise and read by such updates only. `values`: of the outputs, then of
// the updates, with known shapes.
std::vector<Placement> place_updates(Session& session, const RowShares& shares, std::span<const Expr> values,
                                     std::span<const Update> updates);

// Moves changed values of shared variables to the shared memory: they were set by hand, or before the variable became
// shared. Call it before a step, with values that are equal on all ranks.
void move_to_shared(const Session& session, std::span<VariableState* const> changed, const RowShares& shares);

}  // namespace syncline
