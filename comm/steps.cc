#include "comm/steps.h"

#include "syncline/error.h"

namespace syncline::comm {

std::int64_t agree_steps(Communicator& wire, std::int64_t own, Reduce which) {
  if (own < 0) fail<ValueError>("agree_steps: ", own, " steps; give a number that is not negative");
  if (which == Reduce::kSum)
    fail<ValueError>("agree_steps: of all ranks' steps take the least or the most, not the sum");
  wire.wait(wire.all_reduce({}, &own, 1, DType::kInt64, which));
  return own;
}

}  // namespace syncline::comm
