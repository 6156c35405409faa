#include "runtime/schedule/arena.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace syncline {
namespace {

// The placed values, sorted by offset. Finds those that may be live at the same time as a given value: most lifetimes
// are short, so time is divided into blocks, and only a value's own blocks are searched.
class Placed {
  auto by_offset() const {
    return [this](std::size_t a, std::size_t b) { return lives_[a].offset < lives_[b].offset; };
  }

 public:
  explicit Placed(const std::vector<Lifetime>& lives) : lives_(lives), seen_(lives.size(), 0) {
    int last = 0;
    for (const Lifetime& life : lives) last = std::max(last, life.last);
    blocks_.resize(block_of(last) + 1);
  }

  const std::vector<std::size_t>& near(std::size_t i) {
    if (!is_short(i) || 2 * long_.size() > all_.size()) return all_;
    near_short_.clear();
    for (std::size_t block = block_of(lives_[i].first); block <= block_of(lives_[i].last); ++block)
      for (const std::size_t other : blocks_[block])
        if (std::exchange(seen_[other], i + 1) != i + 1) near_short_.push_back(other);
    std::sort(near_short_.begin(), near_short_.end(), by_offset());
    near_.clear();
    std::merge(near_short_.begin(), near_short_.end(), long_.begin(), long_.end(), std::back_inserter(near_),
               by_offset());
    return near_;
  }

  void add(std::size_t i) {
    insert(all_, i);
    if (!is_short(i)) return insert(long_, i);
    for (std::size_t block = block_of(lives_[i].first); block <= block_of(lives_[i].last); ++block)
      blocks_[block].push_back(i);
  }

 private:
  static std::size_t block_of(int time) { return static_cast<std::size_t>(std::max(time, 0)) / 64; }
  bool is_short(std::size_t i) const { return block_of(lives_[i].last) - block_of(lives_[i].first) < 4; }

  void insert(std::vector<std::size_t>& list, std::size_t i) const {
    list.insert(std::upper_bound(list.begin(), list.end(), i, by_offset()), i);
  }

  const std::vector<Lifetime>& lives_;
  std::vector<std::size_t> all_, long_, near_short_, near_;  // sorted by offset
  std::vector<std::vector<std::size_t>> blocks_;             // the short lives in each block of time
  std::vector<std::size_t> seen_;                            // the last value that saw it, plus 1
};

}  // namespace

std::size_t place_in_arena(std::vector<Lifetime>& lives) {
  std::vector<std::size_t> order(lives.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return lives[a].bytes > lives[b].bytes; });

  std::size_t total = 0;
  Placed placed(lives);
  for (const std::size_t i : order) {
    Lifetime& life = lives[i];
    life.bytes = aligned(life.bytes);
    if (life.bytes == 0) continue;
    std::size_t offset = 0;
    for (const std::size_t j : placed.near(i)) {
      const Lifetime& other = lives[j];
      if (other.last < life.first || life.last < other.first) continue;
      if (offset + life.bytes <= other.offset) break;
      offset = std::max(offset, other.offset + other.bytes);
    }
    life.offset = offset;
    total = std::max(total, offset + life.bytes);
    placed.add(i);
  }
  return total;
}

}  // namespace syncline
