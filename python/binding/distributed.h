// What functions ask of the ranks beyond their steps.
#pragma once

#include <span>

#include "runtime/feeds.h"

namespace syncline::python {

// The number of the first dense feed whose value is not the same on every rank, -1 if all are. Looks at the first and
// the last 256 KiB of each. A small collective of all ranks; none alone and under local feeds. Throws CommError.
int differing_feed(std::span<const Feed> feeds);

}  // namespace syncline::python
