// The placement of every value of a graph, and the collectives where two sides differ. Knows no wire.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/placement/distributor.h"

namespace syncline {

// As Distributor::place. A sum over ranks of `by_rows_from` bytes and more is not taken where gathering its operands
// costs little: each rank computes its rows of the value from the whole batch, and these rows are gathered.
PlacedGraph place_graph(std::span<const Expr> roots, const PlacementMap& leaves, const RowShares& shares,
                        std::span<const Placement> wanted, std::int64_t by_rows_from);

}  // namespace syncline
