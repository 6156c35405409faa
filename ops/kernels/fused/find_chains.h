// Groups the ops of a fused program into chains (chain.h).
#pragma once

#include <vector>

#include "ops/kernels/fused/fused.h"

namespace syncline::kernels {

// True if a chain can take the node whatever is before it: an op of chains that reads a block. `is_number` as below.
bool can_be_link(const FusedNode& node, const std::vector<bool>& is_number);

// Brings the nodes of `spec`, at most kFusedRegisters, into an executable order, chain by chain, and returns the
// lengths of the chains. In a chain each node is the only reader of its predecessor. `is_number[i]`: input i is one
// number in each block.
std::vector<int> order_by_chains(FusedSpec& spec, const std::vector<bool>& is_number);

}  // namespace syncline::kernels
