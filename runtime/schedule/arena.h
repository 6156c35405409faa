// place_in_arena: offsets of temporaries in a step's arena. Temporaries with overlapping lifetimes do not overlap in
// memory. Every value starts aligned (base/alignment.h).
#pragma once

#include <cstddef>
#include <vector>

namespace syncline {

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
