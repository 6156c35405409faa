// The communicators of the process, for what programs do together beside their functions.
#pragma once

#include <span>

#include "syncline/distributed/communicator.h"

namespace syncline::python {

// The communicator of all ranks (0) or of a group that make_group numbered. Throws CommError if this process has not
// joined the ranks.
comm::Communicator& wire_of(int group);
// A communicator of these ranks (ascending), who all call this, and nobody else. It lives until this rank leaves.
int make_group(std::span<const int> ranks);

}  // namespace syncline::python
