// Predicts the time of an all-reduce of many nodes from the rounds of the wire (comm/rounds/meeting_rounds.h and
// reduce_rounds.h), without running it. Pure functions.
#pragma once

#include <cstdint>

#include "comm/local/virtual_job.h"

namespace syncline::comm {

// Seconds from the call to the last rank's result, of a sum of `bytes` of float32 over nodes of equal numbers of ranks,
// whose data lie in shared memory. Excludes the sum within a node. The model: the messages of the meeting and of the
// first chunks, of each rank of a node, then for each further chunk what the busiest link needs, or a share of the
// rounds' latency if that is more.
double predicted_seconds(int nodes, int ranks_a_node, std::int64_t bytes, const VirtualLink& link);

}  // namespace syncline::comm
