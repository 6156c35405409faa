// What functions ask of the ranks beyond their steps.
#pragma once

#include <span>

#include "comm/communicator.h"
#include "runtime/feeds.h"

namespace syncline::python {

// The number of the first dense feed whose value is not the same on every rank, -1 if all are. Looks at the first and
// the last 256 KiB of each. A small collective of all ranks; none alone and under local feeds. Throws CommError.
int differing_feed(std::span<const Feed> feeds);

// The communicator of all ranks (0) or of a group that make_group numbered. Throws CommError if this process has not
// joined the ranks.
comm::Communicator& wire_of(int group);
// A communicator of these ranks (ascending), who all call this, and nobody else. It lives until this rank leaves.
int make_group(std::span<const int> ranks);

}  // namespace syncline::python
