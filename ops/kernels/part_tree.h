// The tree along which the sums of the parts of a batch are added: (0 + 1) + (2 + 3) for four parts. There are 1, 2, 4,
// 8, ... parts. Pure.
#pragma once

#include <bit>
#include <cstdint>

namespace syncline::kernels {

// The most sums that sum_parts keeps at a time for `parts` parts.
constexpr std::int64_t sums_kept(std::int64_t parts) {
  std::int64_t sums = 1;
  for (; parts > 1; parts /= 2) ++sums;
  return sums;
}

// How many sums the tree adds once `part` and all parts before it are known.
constexpr int sums_after(std::int64_t part) { return std::countr_one(static_cast<std::uint64_t>(part)); }

// Calls compute(part, place) for each part in order, which writes the part's sum to a place of [0, sums_kept(parts)),
// and add(to, from), which adds the sum at the place `from` to that at `to`. The result is at place 0.
template <class Compute, class Add>
void sum_parts(std::int64_t parts, Compute&& compute, Add&& add) {
  std::int64_t kept = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    compute(part, kept++);
    for (int sum = sums_after(part); sum > 0; --sum, --kept) add(kept - 2, kept - 1);
  }
}

}  // namespace syncline::kernels
