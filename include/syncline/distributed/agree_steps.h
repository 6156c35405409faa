// The number of steps of an epoch when the ranks have different numbers of batches.
#pragma once

#include <cstdint>

#include "syncline/distributed/communicator.h"

#pragma GCC visibility push(default)
namespace syncline::comm {

// Returns the minimum (kMin) or maximum (kMax) over all ranks; `own` is this rank's number. Under kMax a rank without
// batches joins the remaining steps with batches of no rows. Collective over all ranks, once before the epoch, so that
// steps need no agreement of their own. Throws ValueError for a negative number and for kSum.
std::int64_t agree_steps(Communicator& communicator, std::int64_t own, Reduce which);

}  // namespace syncline::comm
#pragma GCC visibility pop
