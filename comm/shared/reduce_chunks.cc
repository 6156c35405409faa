#include "comm/shared/reduce_chunks.h"

#include <algorithm>
#include <cstring>

namespace syncline::comm {
namespace {

std::size_t bytes(std::int64_t count) { return static_cast<std::size_t>(count); }

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::int64_t even_slice(std::int64_t count, std::int64_t most) {
  constexpr std::int64_t kStep = 1024;  // keeps slices aligned
  const std::int64_t slices = std::max<std::int64_t>(divide_up(count, most), 1);
  return std::clamp<std::int64_t>(divide_up(count, slices * kStep) * kStep, 1, most);
}

ReduceChunks::ReduceChunks(const Collective& collective, const Topology& topology, NodeControl& control,
                           const ReduceRounds& rounds, std::span<std::byte* const> parts, bool direct,
                           std::uint64_t first)
    : collective_(collective),
      topology_(topology),
      control_(control),
      parts_(parts),
      first_(first),
      width_(static_cast<std::int64_t>(size_of(collective.dtype))),
      chunk_(collective.count) {
  const bool one_node = topology.node_count() == 1, scatters = collective.kind == Kind::kReduceScatter;
  const std::int64_t rails = topology.rails, slice = slice_bytes(rounds.most_blocks) / width_;
  if (!direct) chunk_ = static_cast<std::int64_t>(control.half_bytes()) / width_;
  else if (!one_node) chunk_ = rails * (scatters ? slice : even_slice(divide_up(collective.count, rails), slice));
  count_ = divide_up(collective.count, chunk_);
  if (!scatters) return;
  find_parts_of_nodes(topology, collective.counts, part_begin_);
  rank_begin_.push_back(part_begin_[bytes(topology.node)]);
  for (const int rank : topology.own()) rank_begin_.push_back(rank_begin_.back() + collective.counts[bytes(rank)]);
  if (one_node) part_begin_ = rank_begin_;
  count_ = one_node ? (direct ? 1 : divide_up(collective.count, chunk_ - control.ranks()))
                    : count_between_nodes(rounds, direct ? slice : chunk_, direct ? rails : 1);
  staged_at_.push_back(0);
  for (std::size_t owner = 0; owner + 1 < part_begin_.size(); ++owner)
    staged_at_.push_back(staged_at_.back() + part_of(part_begin_[owner + 1] - part_begin_[owner], 0, count_).size());
  SYNCLINE_CHECK(direct || staged_at_.back() <= chunk_);
}

// The rounds have memory for chunks of `most` elements a rail whose parts are equal. So no part may have more than its
// share; or the chunk is so small that all its elements fit in one message of every round: a node halves its elements
// in its first round, and receives each of them once for each of its blocks. Rounding adds an element for each owner.
std::int64_t ReduceChunks::count_between_nodes(const ReduceRounds& rounds, std::int64_t most,
                                               std::int64_t rails) const {
  SYNCLINE_CHECK(most >= rounds.parts());
  std::int64_t largest = 0, owners = 0;
  for (std::int64_t p = 0; p < rounds.parts(); ++p) {
    const auto owner = bytes(rounds.owners[bytes(p)]);
    largest = std::max(largest, divide_up(part_begin_[owner + 1] - part_begin_[owner], rounds.places[bytes(p)].parts));
  }
  for (std::size_t owner = 0; owner + 1 < part_begin_.size(); ++owner)
    owners += part_begin_[owner + 1] > part_begin_[owner] ? 1 : 0;
  const std::int64_t count = divide_up(largest, rails * (most / rounds.parts()));
  const std::int64_t all = most / (2 * rounds.most_blocks) - owners;
  if (rounds.algorithm != Algorithm::kHalves || all <= 0) return count;
  return std::min(count, divide_up(collective_.count, rails * all));
}

Range ReduceChunks::range(std::int64_t k) const { return {k * chunk_, std::min((k + 1) * chunk_, collective_.count)}; }

Range ReduceChunks::piece(std::int64_t k, int owner) const {
  const std::int64_t begin = part_begin_[bytes(owner)];
  const Range own = part_of(part_begin_[bytes(owner) + 1] - begin, k, count_);
  return {begin + own.begin, begin + own.end};
}

std::byte* ReduceChunks::place(int local, std::int64_t k) const {
  if (staged()) return control_.staging(local, number(k));
  return parts_[bytes(local)] + (scatters() ? 0 : k * chunk_ * width_);
}

std::int64_t ReduceChunks::piece_begin(std::int64_t k, int owner) const {
  return staged() ? staged_at_[bytes(owner)] : piece(k, owner).begin;
}

void ReduceChunks::find_slice(std::int64_t k, int rail, const ReduceRounds& rounds, Slice& slice) const {
  const std::int64_t rails = topology_.rails, parts = rounds.parts();
  slice.begin.assign(1, 0);
  slice.pieces.clear();
  if (!scatters()) {
    const Range own = part_of(range(k).size(), rail, rails);
    const std::int64_t each = own.size() / parts, rest = own.size() % parts;
    for (std::int64_t p = 1; p <= parts; ++p) slice.begin.push_back(p * each + std::min(p, rest));
    slice.pieces.push_back({0, own.begin, own.size()});
    return;
  }
  slice.of_nodes.clear();
  for (int node = 0; node < topology_.node_count(); ++node) {
    const std::int64_t begin = piece_begin(k, node);
    const Range own = part_of(piece(k, node).size(), rail, rails);
    slice.of_nodes.push_back({begin + own.begin, begin + own.end});
  }
  for (std::size_t p = 0; p < rounds.owners.size(); ++p) {
    const Range& own = slice.of_nodes[bytes(rounds.owners[p])];
    const auto [index, count] = rounds.places[p];
    const Range part = count == 1 ? Range{0, own.size()} : part_of(own.size(), index, count);
    slice.pieces.push_back({slice.begin.back(), own.begin + part.begin, part.size(), rounds.owners[p]});
    slice.begin.push_back(slice.begin.back() + part.size());
  }
}

Range ReduceChunks::wanted(int local, std::int64_t k, const Range& elements) const {
  const std::int64_t shift = piece(k, topology_.node).begin - piece_begin(k, topology_.node);
  const std::int64_t begin = rank_begin_[bytes(local)] - shift, end = rank_begin_[bytes(local) + 1] - shift;
  return {std::clamp(elements.begin, begin, end), std::clamp(elements.end, begin, end)};
}

bool ReduceChunks::has_data(int rank) const { return collective_.kind != Kind::kBroadcast || collective_.root == rank; }

void ReduceChunks::stage(std::int64_t k) const {
  if (!staged() || k >= count_) return;
  const int local = topology_.local;
  std::byte* const memory = place(local, k);
  if (scatters()) {
    for (int owner = 0; owner < std::ssize(part_begin_) - 1; ++owner) {
      const Range elements = piece(k, owner);
      std::memcpy(memory + piece_begin(k, owner) * width_, data(elements.begin), bytes(elements.size() * width_));
    }
  } else if (has_data(topology_.rank)) {
    std::memcpy(memory, data(range(k).begin), bytes(range(k).size() * width_));
  }
  control_.of(local).staged.store(number(k) + 1, std::memory_order_release);
}

void ReduceChunks::unstage(std::int64_t k) const {
  if (!staged()) return;
  const std::byte* const memory = place(topology_.local, k);
  if (scatters()) {
    const int node = topology_.node;
    const std::int64_t begin = piece_begin(k, node);
    const Range own = wanted(topology_.local, k, {begin, begin + piece(k, node).size()});
    std::memcpy(data(piece(k, node).begin + own.begin - begin), memory + own.begin * width_,
                bytes(own.size() * width_));
  } else if (collective_.kind != Kind::kBroadcast || !has_data(topology_.rank)) {  // a root's memory may be read-only
    std::memcpy(data(range(k).begin), memory, bytes(range(k).size() * width_));
  }
}

void ReduceChunks::tell_worked(std::int64_t k) const {
  control_.of(topology_.local).reduced.store(number(k) + 1, std::memory_order_release);
}

}  // namespace syncline::comm
