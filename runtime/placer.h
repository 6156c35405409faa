// The placement of every value of a graph, and the collectives where two sides differ. Knows no wire.
#pragma once

#include <span>

#include "runtime/distributor.h"

namespace syncline {

// As Distributor::place.
PlacedGraph place_graph(std::span<const Expr> roots, const PlacementMap& leaves, const RowShares& shares,
                        std::span<const Placement> wanted);

}  // namespace syncline
