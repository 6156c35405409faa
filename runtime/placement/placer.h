// place_graph: gives every value a placement and inserts collectives where an op needs another one. A pure function.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/placement/strategy.h"

namespace syncline {

struct PlacementLimits {
  // Replaces an all-reduce of at least so many bytes if its operands are small: each rank computes its rows of the sum
  // from the gathered operands, and the rows are gathered.
  std::int64_t by_rows_from;
  // Replaces an all-reduce of at least so many bytes by a reduce_scatter if each rank needs its own rows only.
  std::int64_t scatter_from;
};

// Arguments: Strategy::place. `by_parts`: the batch has parts (Strategy::parts).
PlacedGraph place_graph(std::span<const Expr> roots, const PlacementMap& leaves, const RowShares& shares,
                        std::span<const Placement> wanted, const PlacementLimits& limits, bool by_parts);

}  // namespace syncline
