// place_in_arena: offsets of temporaries in a step's arena. Temporaries with overlapping lifetimes do not overlap in
// memory.
#pragma once

#include <cstddef>
#include <vector>

namespace syncline {

inline constexpr std::size_t kAlignment = 64;  // bytes; every value starts aligned
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Lifetime {
  std::size_t bytes = 0;
  int first = 0;  // the task that writes it; not negative
  int last = 0;   // the last task that reads it
  std::size_t offset = 0;
};

// Sets aligned offsets, rounds `bytes` up to the alignment and returns the total bytes. Places the largest first, each
// in the lowest gap.
std::size_t place_in_arena(std::vector<Lifetime>& lives);

}  // namespace syncline
