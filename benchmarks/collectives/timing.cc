#include "benchmarks/collectives/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace syncline::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSampleSeconds = 0.01;  // approximate duration of a sample, which repeats a call
// Every call may multiply the buffers' values by the number of ranks; 250 doublings lead from the smallest normal
// number nearly to the largest. Zeros would never overflow, but memory is twice as fast when the stored values do not
// change.
constexpr double kSmallest = 1.2e-38, kDoublings = 250;

// The mean time of a call, on the slowest rank. Each rank writes its buffer first, as a training step does.
double seconds_a_call(Contender& contender, std::int64_t count, int calls) {
  std::fill_n(contender.data(), count, static_cast<float>(kSmallest));
  barrier();
  const auto start = Clock::now();
  for (int i = 0; i < calls; ++i) contender.call(count);
  return largest(std::chrono::duration<double>(Clock::now() - start).count() / calls);
}

}  // namespace

double Named::median() const {
  std::vector<double> sorted = seconds;
  std::ranges::sort(sorted);
  return sorted[sorted.size() / 2];
}

void time_in_turn(std::span<Named> contenders, std::int64_t count, int repetitions, int ranks) {
  const double most = std::floor(kDoublings / std::log2(ranks));
  if (count * sizeof(float) <= 64 << 10) repetitions *= 5;
  std::vector<int> calls;
  for (Named& named : contenders) {
    named.seconds.clear();
    seconds_a_call(*named.contender, count, 2);  // warms up
    const double once = seconds_a_call(*named.contender, count, 3);
    calls.push_back(static_cast<int>(std::clamp(kSampleSeconds / once, 1.0, most)));
  }
  for (int i = 0; i < repetitions; ++i)
    for (std::size_t k = 0; k < contenders.size(); ++k)
      contenders[k].seconds.push_back(seconds_a_call(*contenders[k].contender, count, calls[k]));
}

}  // namespace syncline::benchmarks
