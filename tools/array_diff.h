// How far the values of two arrays are from each other: absolutely, relatively, and in ULPs.
#pragma once

#include <cstdint>
#include <optional>

#include "syncline/array.h"

namespace syncline::tools {

// Two values agree if they are equal (two NaNs are), or both finite and within atol + rtol * max(|a|, |b|), or, for
// floats, within `ulps` units in the last place: that many steps from one to the next representable number.
struct Tolerances {
  double atol = 0, rtol = 0;
  std::uint64_t ulps = 0;
};

template <class T>
struct Largest {
  T value{};
  std::int64_t at = -1;  // element in C order; -1: there is none

  void offer(T candidate, std::int64_t index) {
    if (at >= 0 && candidate <= value) return;
    value = candidate;
    at = index;
  }
};

struct ArrayDifference {
  std::int64_t elements = 0;
  std::int64_t differing = 0;                // beyond the tolerances
  std::int64_t special = 0, special_at = 0;  // of those, NaN or infinite on one side or with other signs; the first
  // Over all pairs of unequal finite values. Relative is to the larger magnitude of the two.
  Largest<double> absolute, relative;
  std::optional<Largest<std::uint64_t>> ulps;  // for floats
};

// Throws ValueError unless dtypes and shapes are equal.
ArrayDifference compare(const Array& a, const Array& b, const Tolerances& tolerances);

}  // namespace syncline::tools
