#include "runtime/schedule/arena.h"

#include <algorithm>
#include <numeric>

namespace syncline {

std::size_t place_in_arena(std::vector<Lifetime>& lives) {
  std::vector<std::size_t> order(lives.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return lives[a].bytes > lives[b].bytes; });

  std::size_t total = 0;
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t i : order) {
    Lifetime& life = lives[i];
    life.bytes = aligned(life.bytes);
    if (life.bytes == 0) continue;
    std::size_t offset = 0;
    for (const std::size_t j : placed) {
      const Lifetime& other = lives[j];
      if (other.last < life.first || life.last < other.first) continue;
      if (offset + life.bytes <= other.offset) break;
      offset = std::max(offset, other.offset + other.bytes);
    }
    life.offset = offset;
    total = std::max(total, offset + life.bytes);
    const auto at = std::upper_bound(placed.begin(), placed.end(), offset,
                                     [&](std::size_t o, std::size_t j) { return o < lives[j].offset; });
    placed.insert(at, i);
  }
  return total;
}

}  // namespace syncline
