// The offsets between the clocks of a job's ranks. Each machine counts CLOCK_MONOTONIC from its own start.
#pragma once

#include <cstdint>
#include <functional>

#include "syncline/distributed/communicator.h"

namespace syncline::comm {

struct ClockOffset {
  std::int64_t at = 0;      // time of the measurement, on this rank's clock
  std::int64_t offset = 0;  // add it to this rank's clock to get rank 0's; 0 on rank 0
  std::int64_t error = 0;   // bound on the distance to the true offset
};

// Collective: in each of several rounds the ranks gather their times. What rank 0 sends in a round arrives here after
// it was sent, and vice versa, so each round bounds the offset from both sides; the tightest bounds count. All times
// are in nanoseconds. `clock` is timeline::now except in tests.
ClockOffset measure_clock(Communicator& communicator, const std::function<std::int64_t()>& clock);

}  // namespace syncline::comm
