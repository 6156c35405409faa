// How many steps an epoch has where every rank brings batches of its own, and not the same number of them.
#pragma once

#include <cstdint>

#include "syncline/distributed/communicator.h"

namespace syncline::comm {

// The least (kMin) or the largest (kMax) of the ranks' numbers; `own` is this rank's. Under kMax a rank that has run
// out takes part in the remaining steps with batches of no rows. A collective of all ranks: before the epoch, so that
// nobody has to tell in each step whether it goes on. Throws ValueError for a negative number and for kSum.
std::int64_t agree_steps(Communicator& wire, std::int64_t own, Reduce which);

}  // namespace syncline::comm
