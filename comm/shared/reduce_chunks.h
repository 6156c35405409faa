// The chunks of a large reduction or broadcast: which elements each has, and where these lie in the memory of the
// node's ranks.
//
// The chunks of an all-reduce and of a broadcast are runs of elements. A chunk of a reduce_scatter has a piece of each
// owner's part, so that each owner has work in each chunk. Owners are the nodes, or the ranks if there is one node.
//
// Data outside shared memory is staged: each rank copies its chunk to its staging memory, and takes the result from
// there. The caller owns all that this refers to. One thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/rounds/reduce_rounds.h"
#include "comm/shared/node.h"
#include "comm/shared/node_control.h"
#include "comm/worker/collective.h"

namespace syncline::comm {

// The most bytes of a rail's slice of a chunk between nodes. It stays in the cache, and kChunksInFlight of them hide
// the latency of the rounds of a thousand nodes. `most_blocks`: of a node; it has a sum of the slice for each.
constexpr std::int64_t slice_bytes(int most_blocks) { return (std::int64_t{768} << 10) * 2 / std::max(most_blocks, 2); }
// Elements of a slice, at most `most`, so that a rail's slices differ little in size. `count`: of all its slices.
std::int64_t even_slice(std::int64_t count, std::int64_t most);

// One rail's elements of a chunk, in the order of the rounds' parts.
struct Slice {
  // Elements that are adjacent in the slice and in memory.
  struct Piece {
    std::int64_t begin = 0;   // in the slice
    std::int64_t memory = 0;  // from ReduceChunks::place
    std::int64_t size = 0;
    int owner = -1;  // node; -1: all
  };
  std::vector<std::int64_t> begin;  // by part; last: the number of elements
  std::vector<Piece> pieces;
  std::vector<Range> of_nodes;  // of a reduce_scatter, by node: the slice of its piece, from ReduceChunks::place

  std::int64_t size() const { return begin.back(); }
  Range elements(const Range& of_parts) const {
    return {begin[static_cast<std::size_t>(of_parts.begin)], begin[static_cast<std::size_t>(of_parts.end)]};
  }
};

class ReduceChunks {
 public:
  // `parts`: the data in the memory of each local rank; empty: this node stages them. `direct`: no node stages them, so
  // chunks may be large. `first`: the number of chunks before this collective.
  ReduceChunks(const Collective& collective, const Topology& topology, NodeControl& control, const ReduceRounds& rounds,
               std::span<std::byte* const> parts, bool direct, std::uint64_t first);

  bool staged() const { return parts_.empty(); }
  bool scatters() const { return !part_begin_.empty(); }
  std::int64_t count() const { return count_; }
  std::uint64_t number(std::int64_t k) const { return first_ + static_cast<std::uint64_t>(k); }
  std::int64_t width() const { return width_; }

  // Elements of an all-reduce or a broadcast.
  Range range(std::int64_t k) const;
  // Elements of an owner's piece.
  Range piece(std::int64_t k, int owner) const;
  // A local rank's memory of the chunk, and where an owner's piece begins there.
  std::byte* place(int local, std::int64_t k) const;
  std::int64_t piece_begin(std::int64_t k, int owner) const;
  std::byte* data(std::int64_t element) const { return static_cast<std::byte*>(collective_.data) + element * width_; }
  // Between nodes: computes a rail's slice.
  void find_slice(std::int64_t k, int rail, const ReduceRounds& rounds, Slice& slice) const;
  // Calls write(place, element, size) for each run of the slice's elements that a rank of this node gets: its memory,
  // the first element in the slice, and how many there are.
  template <class Write>
  void for_results(std::int64_t k, const Slice& slice, const Write& write) const;

  // Does nothing unless the data are staged. `stage` tells the other ranks.
  void stage(std::int64_t k) const;
  void unstage(std::int64_t k) const;
  void tell_worked(std::int64_t k) const;

 private:
  std::int64_t count_between_nodes(const ReduceRounds& rounds, std::int64_t most, std::int64_t rails) const;
  bool has_data(int rank) const;
  // Which of these elements of this node's piece a local rank gets; both from `place`.
  Range wanted(int local, std::int64_t k, const Range& elements) const;

  const Collective& collective_;
  const Topology& topology_;
  NodeControl& control_;
  const std::span<std::byte* const> parts_;
  const std::uint64_t first_;
  const std::int64_t width_;
  std::int64_t count_ = 0;  // chunks
  std::int64_t chunk_ = 0;  // elements of a chunk, at most
  // Of a reduce_scatter; last: the end.
  std::vector<std::int64_t> part_begin_;  // where owners' parts begin
  std::vector<std::int64_t> rank_begin_;  // where the parts of this node's ranks begin
  std::vector<std::int64_t> staged_at_;   // where owners' pieces begin in staging memory
};

template <class Write>
void ReduceChunks::for_results(std::int64_t k, const Slice& slice, const Write& write) const {
  for (const Slice::Piece& piece : slice.pieces) {
    if (scatters() && piece.owner != topology_.node) continue;
    for (int l = 0; l < control_.ranks(); ++l) {
      Range elements{piece.memory, piece.memory + piece.size};
      if (scatters()) elements = wanted(l, k, elements);
      if (elements.size() > 0)
        write(place(l, k) + elements.begin * width_, piece.begin + elements.begin - piece.memory, elements.size());
    }
  }
}

}  // namespace syncline::comm
