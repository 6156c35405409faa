#include "runtime/schedule/arena.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>

#include "base/alignment.h"

namespace syncline {
namespace {

struct Range {
  std::size_t begin, end;  // bytes
};

// Ranges in use, ascending. Ranges that touch are one range.
class ByteRanges {
 public:
  void add(std::size_t begin, std::size_t end) {
    const auto first = find(begin);
    auto last = first;
    for (; last != ranges_.end() && last->begin <= end; ++last) {
      begin = std::min(begin, last->begin);
      end = std::max(end, last->end);
    }
    if (first == last) {
      ranges_.insert(first, {begin, end});
    } else {
      *first = {begin, end};
      ranges_.erase(first + 1, last);
    }
  }

  std::span<const Range> all() const { return ranges_; }

 private:
  // The first range that ends at `offset` or behind it.
  std::vector<Range>::iterator find(std::size_t offset) {
    return std::partition_point(ranges_.begin(), ranges_.end(), [&](const Range& r) { return r.end < offset; });
  }

  std::vector<Range> ranges_;
};

// The memory in use over time: a binary tree over intervals of time. A life is noted in the few largest intervals that
// it covers. As networks have few sizes, most ranges touch: placing a value then takes about log(n) steps, however long
// it lives.
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
        1, 0, leaves_, life, [&](Interval& node) { in_use_.push_back(node.all_time.all()); },
        [&](Interval& node) { in_use_.push_back(node.some_time.all()); });
    std::size_t offset = 0;
    for (std::size_t agreeing = 0, i = 0; agreeing < in_use_.size(); i = (i + 1) % in_use_.size()) {
      std::span<const Range>& ahead = in_use_[i];
      const std::size_t before = offset;
      for (; !ahead.empty() && ahead.front().begin < offset + life.bytes; ahead = ahead.subspan(1))
        offset = std::max(offset, ahead.front().end);
      agreeing = offset == before ? agreeing + 1 : 1;
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
    const auto first = static_cast<std::size_t>(life.first), last = static_cast<std::size_t>(life.last);
    if (first <= begin && end <= last + 1) return covers(nodes_[node]);
    touches(nodes_[node]);
    const std::size_t middle = begin + (end - begin) / 2;
    if (first < middle) visit(2 * node, begin, middle, life, touches, covers);
    if (last >= middle) visit(2 * node + 1, middle, end, life, touches, covers);
  }

  const std::size_t leaves_;
  std::vector<Interval> nodes_;                 // node i has the children 2 i and 2 i + 1
  std::vector<std::span<const Range>> in_use_;  // during first_fit: the ranges that each interval still has ahead
};

}  // namespace

std::size_t place_in_arena(std::vector<Lifetime>& lives) {
  std::vector<std::size_t> order(lives.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return lives[a].bytes > lives[b].bytes; });

  int last = 0;
  for (const Lifetime& life : lives) last = std::max(last, life.last);
  std::size_t total = 0;
  Occupied occupied(last);
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
