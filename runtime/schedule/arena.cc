#include "runtime/schedule/arena.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace syncline {
namespace {

// Ranges of bytes in use, ascending. Ranges that touch are one range.
class ByteRanges {
 public:
  void add(std::size_t begin, std::size_t end) {
    const auto first = find(begin);
    auto last = first;
    for (; last != ranges_.end() && last->first <= end; ++last) {
      begin = std::min(begin, last->first);
      end = std::max(end, last->second);
    }
    if (first == last) {
      ranges_.insert(first, {begin, end});
    } else {
      *first = {begin, end};
      ranges_.erase(first + 1, last);
    }
  }

  // The first offset from `begin` on behind all ranges that [begin, begin + bytes) overlaps.
  std::size_t behind(std::size_t begin, std::size_t bytes) const {
    const auto found = find(begin + 1);
    return found != ranges_.end() && found->first < begin + bytes ? found->second : begin;
  }

 private:
  using Range = std::pair<std::size_t, std::size_t>;

  // The first range that ends at `offset` or behind it.
  std::vector<Range>::iterator find(std::size_t offset) {
    return std::partition_point(ranges_.begin(), ranges_.end(), [&](const Range& r) { return r.second < offset; });
  }
  std::vector<Range>::const_iterator find(std::size_t offset) const {
    return std::partition_point(ranges_.begin(), ranges_.end(), [&](const Range& r) { return r.second < offset; });
  }

  std::vector<Range> ranges_;
};

// The memory in use over time: a binary tree over intervals of time. A life is noted in the few largest intervals that
// it covers, so that placing n values takes about n log(n) steps, however long they live.
class Occupied {
 public:
  explicit Occupied(int last) : leaves_(std::bit_ceil(static_cast<std::size_t>(last) + 1)), nodes_(2 * leaves_) {}

  void add(const Lifetime& life) {
    const std::size_t end = life.offset + life.bytes;
    const auto touches = [&](Interval& node) { node.some_time.add(life.offset, end); };
    const auto covers = [&](Interval& node) {
      node.all_time.add(life.offset, end);
      node.some_time.add(life.offset, end);
    };
    visit(1, 0, leaves_, life, touches, covers);
  }

  // The lowest offset at which `life` overlaps no other life.
  std::size_t first_fit(const Lifetime& life) {
    in_use_.clear();
    visit(
        1, 0, leaves_, life, [&](Interval& node) { in_use_.push_back(&node.all_time); },
        [&](Interval& node) { in_use_.push_back(&node.some_time); });
    std::size_t offset = 0;
    for (std::size_t agreeing = 0, i = 0; agreeing < in_use_.size(); i = (i + 1) % in_use_.size()) {
      const std::size_t next = in_use_[i]->behind(offset, life.bytes);
      agreeing = next == offset ? agreeing + 1 : 0;
      offset = next;
    }
    return offset;
  }

 private:
  struct Interval {
    ByteRanges all_time;   // of lives that cover this interval, but not the one above it
    ByteRanges some_time;  // of lives that are alive at some time in it, except those that cover the one above it
  };

  // Calls covers(node) for the largest intervals within the life, and touches(node) for those above them.
  template <class Touches, class Covers>
  void visit(std::size_t node, std::size_t begin, std::size_t end, const Lifetime& life, const Touches& touches,
             const Covers& covers) {
    const auto first = static_cast<std::size_t>(life.first + 1), last = static_cast<std::size_t>(life.last + 1);
    if (first <= begin && end <= last + 1) return covers(nodes_[node]);
    touches(nodes_[node]);
    const std::size_t middle = begin + (end - begin) / 2;
    if (first < middle) visit(2 * node, begin, middle, life, touches, covers);
    if (last >= middle) visit(2 * node + 1, middle, end, life, touches, covers);
  }

  const std::size_t leaves_;
  std::vector<Interval> nodes_;  // node i has the children 2 i and 2 i + 1
  std::vector<const ByteRanges*> in_use_;
};

}  // namespace

std::size_t place_in_arena(std::vector<Lifetime>& lives) {
  std::vector<std::size_t> order(lives.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return lives[a].bytes > lives[b].bytes; });

  int last = 0;
  for (const Lifetime& life : lives) last = std::max(last, life.last);
  std::size_t total = 0;
  Occupied occupied(last + 1);
  for (const std::size_t i : order) {
    Lifetime& life = lives[i];
    life.bytes = aligned(life.bytes);
    if (life.bytes == 0) continue;
    life.offset = occupied.first_fit(life);
    total = std::max(total, life.offset + life.bytes);
    occupied.add(life);
  }
  return total;
}

}  // namespace syncline
