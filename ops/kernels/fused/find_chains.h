// Which ops of a fused program are computed together as chains (chain.h).
#pragma once

#include <vector>

#include "ops/kernels/fused/fused.h"

namespace syncline::kernels {

// The nodes of `spec` in an order in which they can run: each entry is a chain, every node of which reads the one
// before and is the only one that does, or a node alone. `is_number[i]`: input i is one element for all.
std::vector<std::vector<int>> find_chains(const FusedSpec& spec, const std::vector<bool>& is_number);

// `spec` with its nodes in that order.
FusedSpec reorder(const FusedSpec& spec, const std::vector<std::vector<int>>& chains);

}  // namespace syncline::kernels
