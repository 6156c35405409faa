// Large gathers. Each node collects the bytes of its ranks. Then each rail exchanges its slice of what the nodes
// have, and each node collects these slices: every byte enters a node once.
//
// Algorithms: kDirect sends the slices in steps: the network works on one while the node collects another. kHalves
// packs them, and sends what is known in the rounds of comm/rounds/meeting_rounds.h.
//
// NodeWire owns and drives it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "comm/rounds/algorithms.h"
#include "comm/rounds/meeting_rounds.h"
#include "comm/rounds/reduce_rounds.h"
#include "comm/shared/node.h"
#include "comm/shared/node_control.h"
#include "comm/shared/steps.h"

namespace syncline::comm {

class Gather {
 public:
  // `topology` and `algorithms` must live as long as this object.
  Gather(const Topology& topology, AlgorithmRows algorithms, NodeControl& control, Network& network);

  // `region`: the memory in which each local rank has the result at the same offset; null: the data are staged. `done`:
  // the number of chunks that all ranks have finished; run() updates it.
  // `collective` must live as long as the steps.
  Steps run(const Collective& collective, const Window* region, std::uint64_t& done);
  // A gather in memory that the ranks of a node share; each rank's bytes are in their place.
  Steps run_on_nodes(const Collective& collective, std::uint64_t& done);
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

  bool has_rail() const { return first_rail_ < end_rail_; }
  Range slice_of(int node, int rail) const;
  bool exchanged(std::int64_t step);
  void find_others(std::int64_t at, std::int64_t most);
  bool arrived(std::int64_t step);
  auto pass(const Run& run, std::atomic<std::uint64_t> RankControl::*counter);
  Steps copy();
  Steps exchange(const Run& run);
  Steps exchange_in_steps(const Run& run);
  Steps exchange_by_halves(const Run& run);
  void start(const Run& run, std::int64_t step);
  Steps share(const Run& run);
  // Calls visit(bytes of the run, their place in the chunk) for what a local rank has in the chunk [at, at + size).
  template <class Visit>
  void for_chunk(int local, std::int64_t at, std::int64_t size, const Visit& visit) const;

  const Topology& topology_;
  const int first_rail_, end_rail_;  // this rank's
  NodeControl& control_;
  Network& network_;
  const AlgorithmRows algorithms_;
  std::vector<MeetingRound> rounds_;
  // Kept, so that a gather allocates nothing.
  std::vector<std::int64_t> begin_;       // of the nodes' parts
  std::vector<std::vector<Range>> runs_;  // by local rank: what the node collects from it
  std::int64_t piece_ = 0;                // bytes of a slice in a step
  std::array<bool, 2> open_{};            // even and odd steps: under way
  std::vector<std::byte> packed_;
  std::vector<std::int64_t> packed_at_;
  Messages messages_;
  std::vector<Copy> copies_;
};

}  // namespace syncline::comm
