// Where temporaries lie in a step's arena: two whose lives overlap do not share a byte.
#pragma once

#include <cstddef>
#include <vector>

namespace syncline {

inline constexpr std::size_t kAlignment = 64;  // bytes: of every value
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Lifetime {
  std::size_t bytes = 0;
  int first = 0;  // the task that writes it
  int last = 0;   // the last that reads it
  std::size_t offset = 0;
};

// Sets the offsets, aligned, and returns the bytes needed in all. Largest first, each in the lowest gap.
std::size_t place_in_arena(std::vector<Lifetime>& lives);

}  // namespace syncline
