// Large gathers. Each node collects the bytes of its ranks. Then rail l exchanges the l-th slice of what the nodes
// have, and each node collects these slices: every byte enters a node once.
//
// NodeWire owns and drives it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/shared/node.h"
#include "comm/shared/node_control.h"
#include "comm/shared/reduce_rounds.h"
#include "comm/shared/steps.h"

namespace syncline::comm {

class Gather {
 public:
  Gather(const Topology& topology, NodeControl& control, Network& network)
      : topology_(topology), control_(control), network_(network) {}

  // `region`: the memory in which each local rank has the result at the same offset; null: the data are staged. `done`:
  // the number of chunks that all ranks have finished; run() updates it.
  // `collective` must live as long as the steps.
  Steps run(const Collective& collective, const Window* region, std::uint64_t& done);
  // A large broadcast on one node, through the staging memory: a gather to which only the root has bytes to add.
  Steps broadcast_on_node(const Collective& collective, std::uint64_t& done);

 private:
  struct Run;
  // The memory may be the same, but must not overlap otherwise.
  struct Copy {
    std::byte* to;
    const std::byte* from;
    std::int64_t size;
  };

  Steps copy();
  Steps exchange_slices(const Run& run);
  Steps share(const Run& run, std::byte* first, std::span<const std::int64_t> counts);

  const Topology topology_;
  NodeControl& control_;
  Network& network_;
  // Kept, so that a gather allocates nothing.
  std::vector<std::int64_t> begin_, slices_of_ranks_, root_only_;
  std::vector<Range> slices_;
  Messages messages_;
  std::vector<std::byte*> parts_;
  std::vector<Copy> copies_;
};

}  // namespace syncline::comm
