// Times collectives in turn. All calls are collective. Throws CommError.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/collectives/contenders.h"

namespace syncline::benchmarks {

struct Named {
  std::string name;
  std::unique_ptr<Contender> contender;
  std::vector<double> seconds = {};  // of a call, by repetition
  double median() const;
};

// Times calls with `count` elements, in turn, `repetitions` samples of about 10 ms each. Of a short call a sample is
// shorter, so there are more of them. The time of a call is that of its slowest rank.
void time_in_turn(std::span<Named> contenders, std::int64_t count, int repetitions, int ranks);

}  // namespace syncline::benchmarks
