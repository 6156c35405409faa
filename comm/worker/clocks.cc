#include "comm/worker/clocks.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <vector>

namespace syncline::comm {
namespace {

constexpr int kRounds = 50;

struct Times {
  std::int64_t sent = 0;             // start of this round
  std::int64_t received_before = 0;  // end of the previous round
};

}  // namespace

ClockOffset measure_clock(Communicator& communicator, const std::function<std::int64_t()>& clock) {
  const auto size = static_cast<std::size_t>(communicator.size());
  const std::vector<std::int64_t> bytes(size, sizeof(Times));
  const std::uint64_t names = remember_names("the clocks of the timeline");
  std::vector<Times> all(size);
  Times own;
  std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  std::int64_t sent_before = 0;
  for (std::uint64_t round = 0; round <= kRounds; ++round) {
    own.sent = clock();
    communicator.wait(communicator.all_gather({.step = round, .names = names}, &own, all.data(), bytes));
    const std::int64_t received = clock();
    if (round > 0) {  // round 0 warms up; rank 0 sends the end of a round with the next one
      if (round > 1) most = std::min(most, all[0].received_before - sent_before);
      least = std::max(least, all[0].sent - received);
    }
    sent_before = own.sent;
    own.received_before = received;
  }
  if (communicator.rank() == 0) return {.at = clock()};
  // Clocks that drift during the rounds may make the bounds cross by this amount.
  const std::int64_t error = (std::abs(most - least) + 1) / 2;
  return {.at = clock(), .offset = least + (most - least) / 2, .error = error};
}

}  // namespace syncline::comm
