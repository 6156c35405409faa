// Large reductions: all ranks of a node reduce their slices of a chunk, over everybody's buffers; between nodes, equal
// slices are exchanged. There two chunks are under way, so that the network works on one while the node works on the
// other.
//
// Owned and driven by NodeWire. Data that do not lie in the shared region go through the board's staging memory. The
// sums do not depend on where data lie or how they are cut.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "comm/shared/board.h"
#include "comm/shared/node.h"
#include "comm/shared/sum.h"

namespace syncline::comm {

// Network channels.
enum : int { kHeaders = 0, kSmallValues = 1, kExchange = 2, kReturn = 4 };

// Elements [begin, end).
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
// The i-th of n parts of `count` elements, as equal as can be.
Range part_of(std::int64_t count, int i, int n);

class Reduction {
 public:
  // Blocks until the condition holds.
  using Wait = std::function<void(const std::function<bool()>&)>;

  Reduction(const Topology& topology, Board& board, Network& network, WireFormat format);

  // `parts`: where the data lie in the memory of each local rank, or empty; then they are staged. `direct`: they are
  // staged on no node, so that chunks may be large. `done` is the number of chunks that the board has seen so far, and
  // is brought up to date.
  void run(const Job& job, std::span<std::byte* const> parts, bool direct, std::uint64_t& done, const Wait& wait);

 private:
  struct Run;
  // A chunk, as this rank exchanges it: its slice, the part of the slice that this node adds up, bytes of an element.
  struct Cut {
    Range slice, own;
    std::int64_t wire = 0;
  };
  // This rank's slice of a chunk, between nodes.
  struct Lane {
    std::vector<std::byte> sums, outbox, inbox;  // of this node; in the wire's format; from the others
  };

  void on_node(Run& run);
  void scatter_on_node(Run& run);
  void between_nodes(Run& run);
  Cut cut(const Run& run, std::int64_t k) const;
  bool in_place(const Run& run) const;
  std::byte* outbox(const Run& run, std::int64_t k);
  void exchange(Run& run, std::int64_t k);
  void add_up(Run& run, std::int64_t k);
  void bring_back(Run& run, std::int64_t k);
  void finish(Run& run, std::int64_t k);

  const Topology topology_;
  Board& board_;
  Network& network_;
  const WireFormat format_;
  std::array<Lane, 2> lanes_;
  std::vector<std::byte> wide_;  // what came in the wire's format, widened
  std::vector<void*> buffers_;
  std::vector<const void*> terms_;
  std::vector<Parcel> parcels_;
};

}  // namespace syncline::comm
