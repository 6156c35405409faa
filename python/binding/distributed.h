// The communicators of the process, for a program's collectives outside of functions.
#pragma once

#include <span>

#include "syncline/distributed/communicator.h"

namespace syncline::python {

// The communicator of all ranks (0) or of a group (the result of make_group). Throws CommError if this process has not
// joined the ranks.
comm::Communicator& communicator_of(int group);
// Makes a communicator of these ranks (ascending) and returns its number. Exactly these ranks call it. The
// communicator lives until this rank leaves.
int make_group(std::span<const int> ranks);

}  // namespace syncline::python
