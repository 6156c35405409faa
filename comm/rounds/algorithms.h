// Chooses the algorithm of a collective between nodes by the table of syncline/distributed/settings.h. Pure data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "syncline/distributed/settings.h"

namespace syncline::comm {

using AlgorithmRows = std::span<const AlgorithmTable::Row>;

// `bytes`: of a message.
Algorithm choose(AlgorithmRows rows, int nodes, std::int64_t bytes);
// Whether messages of some size have this algorithm.
bool may_choose(AlgorithmRows rows, int nodes, Algorithm algorithm);
// Equal for equal tables.
std::uint64_t digest_of(const AlgorithmTable& table);

}  // namespace syncline::comm
