// How far the clocks of a job's ranks are apart. Machines count CLOCK_MONOTONIC from their own starts.
#pragma once

#include <cstdint>
#include <functional>

#include "syncline/distributed/communicator.h"

namespace syncline::comm {

struct ClockOffset {
  std::int64_t at = 0;      // on this rank's clock: when it was measured
  std::int64_t offset = 0;  // what must be added to this rank's clock to get rank 0's; 0 on rank 0
  std::int64_t error = 0;   // the true offset is no further away than this
};

// Collective: rounds of gathering the ranks' times. What rank 0 sends in a round arrives here after it was sent, and
// the other way round, so each round bounds the offset from both sides; the tightest bounds of all rounds count. All in
// nanoseconds. `clock` is timeline::now but in tests.
ClockOffset measure_clock(Communicator& communicator, const std::function<std::int64_t()>& clock);

}  // namespace syncline::comm
