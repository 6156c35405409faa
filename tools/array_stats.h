// Statistics of an array's values, for `syncline stat`.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "syncline/array.h"

namespace syncline::tools {

using Number = std::variant<std::int64_t, double>;  // int64: integers and bools; double: floats

// min, max, mean, norm and histogram use only the finite values. Without finite values min and max are absent, mean and
// norm 0, and the histogram is empty.
struct ArrayStats {
  std::int64_t nan = 0, infinite = 0, finite = 0;  // numbers of values
  std::optional<Number> min, max;
  double mean = 0, norm = 0;            // L2 norm
  std::vector<std::int64_t> histogram;  // number of values in each of equal parts of [min, max]
};

ArrayStats stats_of(const Array& array, int bins);

}  // namespace syncline::tools
