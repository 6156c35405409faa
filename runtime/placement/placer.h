// place_graph: gives every value a placement and inserts collectives where an op needs another one. A pure function.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/placement/strategy.h"

namespace syncline {

// Arguments: Strategy::place. Replaces an all-reduce of at least `by_rows_from` bytes if its operands are small:
// each rank computes its rows of the sum from the gathered operands, and the rows are gathered.
// `by_parts`: the batch has parts (Strategy::parts).
PlacedGraph place_graph(std::span<const Expr> roots, const PlacementMap& leaves, const RowShares& shares,
                        std::span<const Placement> wanted, std::int64_t by_rows_from, bool by_parts);

}  // namespace syncline
