// The processors on which this process may run: fewer than the machine has after `mpirun --bind-to core`, taskset, or
// in a container.
#pragma once

#include <vector>

namespace syncline {

// Their numbers, ascending. Empty if the system does not tell. Any thread may call it; threads with masks of their own
// get theirs.
std::vector<int> allowed_processors();

}  // namespace syncline
