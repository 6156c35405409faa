// What `syncline stat` says about the values of an array.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "syncline/array.h"

namespace syncline::tools {

using Number = std::variant<std::int64_t, double>;  // of integers and bools, of floats

// Minimum, maximum, mean, norm and histogram are of the finite values; without any they are absent, zero and empty.
struct ArrayStats {
  std::int64_t nan = 0, infinite = 0, finite = 0;  // how many
  std::optional<Number> min, max;
  double mean = 0, norm = 0;            // the norm is the L2 norm
  std::vector<std::int64_t> histogram;  // how many in each of equal parts of [min, max]
};

ArrayStats stats_of(const Array& array, int bins);

}  // namespace syncline::tools
