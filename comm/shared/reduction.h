// Large reductions. Each rank of a node reduces its slice of a chunk over all ranks' buffers. Between nodes, ranks
// exchange equal slices with two chunks in flight: the network works on one while the node works on the other.
//
// NodeWire owns and drives it. Data outside the shared region go through the control block's staging memory. The sums
// follow the tree of comm/shared/sum_tree.h: they do not depend on where data lie, how they are cut, or which ranks
// share a node.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "comm/shared/node.h"
#include "comm/shared/node_control.h"
#include "comm/shared/sum.h"

namespace syncline::comm {

// Elements [begin, end).
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
// The i-th of n parts of `count` elements; sizes differ by at most one.
Range part_of(std::int64_t count, int i, int n);

// Blocks until the condition holds.
using Wait = std::function<void(const std::function<bool()>&)>;

class Reduction {
 public:
  Reduction(const Topology& topology, const SumTree& tree, NodeControl& control, Network& network, WireFormat format);

  // `parts`: the data in the memory of each local rank; empty: the data are staged. `direct`: no node stages them, so
  // chunks may be large. `done`: the number of chunks that all ranks have finished; run() updates it.
  void run(const Collective& collective, std::span<std::byte* const> parts, bool direct, std::uint64_t& done,
           const Wait& wait);

 private:
  struct Run;
  // How this rank exchanges a chunk: its slice, the part of the slice that this node adds up, bytes per element.
  struct Cut {
    Range slice, own;
    std::int64_t wire = 0;
  };
  // Buffers for this rank's slice of a chunk, between nodes. The outbox has, for each node, the sums of this node's
  // blocks of ranks in that node's part of the slice.
  struct PipelineSlot {
    std::vector<std::byte> outbox, inbox;  // sums to send, in the wire's format; received sums
    std::vector<std::byte> sums;           // the sums before they have the wire's format; then the slice's result
  };

  void on_node(Run& run);
  void scatter_on_node(Run& run);
  void between_nodes(Run& run);
  Cut cut(const Run& run, std::int64_t k) const;
  std::int64_t wire_width_of(const Run& run) const;
  bool in_place(const Run& run) const;
  std::byte* outbox(const Run& run, std::int64_t k);
  std::byte* result(const Run& run, std::int64_t k);
  void add_blocks(Run& run, std::int64_t k, std::byte* sums);
  std::byte* received(PipelineSlot& slot, int node, std::int64_t part_bytes) const;
  void exchange(Run& run, std::int64_t k);
  void add_up(Run& run, std::int64_t k);
  void bring_back(Run& run, std::int64_t k);
  void finish(Run& run, std::int64_t k);

  const Topology topology_;
  const SumTree& tree_;
  NodeControl& control_;
  Network& network_;
  const WireFormat format_;
  std::array<PipelineSlot, 2> slots_;
  std::vector<std::byte> wide_;  // received data, widened from the wire's format
  std::vector<void*> buffers_;
  std::vector<const void*> terms_;
  Messages messages_;
};

}  // namespace syncline::comm
