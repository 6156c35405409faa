// Differences between the values of two arrays: absolute, relative, and in ULPs.
#pragma once

#include <cstdint>
#include <optional>

#include "syncline/array.h"

namespace syncline::tools {

// Two values agree if they are equal, both NaN, or both finite and within atol + rtol * max(|a|, |b|). Floats also
// agree within `ulps` units in the last place: steps from one representable number to the next.
struct Tolerances {
  double atol = 0, rtol = 0;
  std::uint64_t ulps = 0;
};

template <class T>
struct Largest {
  T value{};
  std::int64_t at = -1;  // index of the element in C order; -1: there is none

  void offer(T candidate, std::int64_t index) {
    if (at >= 0 && candidate <= value) return;
    value = candidate;
    at = index;
  }
};

struct ArrayDifference {
  std::int64_t elements = 0;
  std::int64_t differing = 0;                // beyond the tolerances
  std::int64_t special = 0, special_at = 0;  // those with a value that is not finite; index of the first
  // Over all pairs of unequal finite values. `relative` is relative to the larger magnitude of the two.
  Largest<double> absolute, relative;
  std::optional<Largest<std::uint64_t>> ulps;  // floats only
};

// Throws ValueError unless dtypes and shapes are equal.
ArrayDifference compare(const Array& a, const Array& b, const Tolerances& tolerances);

}  // namespace syncline::tools
