// Groups the ops of a fused program into chains (chain.h).
#pragma once

#include <vector>

#include "ops/kernels/fused/fused.h"

namespace syncline::kernels {

// True if a chain can take the node whatever is before it: an op of chains that reads a block. `is_number` as below.
bool can_be_link(const FusedNode& node, const std::vector<bool>& is_number);

// Returns the nodes of `spec` in an executable order. An entry is a single node or a chain, in which each node is the
// only reader of its predecessor. `is_number[i]`: input i is one number in each block.
std::vector<std::vector<int>> find_chains(const FusedSpec& spec, const std::vector<bool>& is_number);

// Brings the nodes of `spec` into the order of `chains`.
void reorder(FusedSpec& spec, const std::vector<std::vector<int>>& chains);

}  // namespace syncline::kernels
