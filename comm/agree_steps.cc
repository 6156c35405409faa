#include "syncline/distributed/agree_steps.h"

#include "syncline/error.h"

namespace syncline::comm {

std::int64_t agree_steps(Communicator& wire, std::int64_t own, Reduce which) {
  if (own < 0) fail<ValueError>("agree_steps: the number of steps is ", own, "; give 0 or more");
  if (which == Reduce::kSum)
    fail<ValueError>("agree_steps: the reduction is the sum; take the minimum or the maximum of all ranks' steps");
  wire.wait(wire.all_reduce({}, &own, 1, DType::kInt64, which));
  return own;
}

}  // namespace syncline::comm
