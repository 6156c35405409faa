// Large reductions, and large broadcasts between nodes. Each rank of a node reduces its slices of a chunk over all
// ranks' buffers. Between nodes, the ranks of a rail exchange sums of their slice in the rounds of
// comm/rounds/reduce_rounds.h, with several chunks in flight: the network works on some while the node works on
// another, or waits for a round's latency. A reduce_scatter needs the rounds that add, but not those that return sums.
//
// The root of a broadcast sends the parts of its data to their owners, from which they return as sums do.
//
// NodeWire owns and drives it. Data outside the shared region go through the control block's staging memory. The sums
// follow the tree of comm/rounds/sum_tree.h: they do not depend on where data lie, how they are cut, or which ranks
// share a node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/rounds/algorithms.h"
#include "comm/rounds/reduce_rounds.h"
#include "comm/shared/node.h"
#include "comm/shared/node_control.h"
#include "comm/shared/reduce_chunks.h"
#include "comm/shared/steps.h"
#include "comm/shared/sum.h"

namespace syncline::comm {

class Reduction {
 public:
  // `topology`, `tree` and `algorithms` must live as long as this object.
  Reduction(const Topology& topology, const SumTree& tree, AlgorithmRows algorithms, NodeControl& control,
            Network& network, WireFormat format);

  // `parts`: the data in the memory of each local rank; empty: this node stages them. `direct`: no node stages them, so
  // chunks may be large. `done`: the number of chunks that all ranks have finished; run() updates it.
  // `collective` and `parts` must live as long as the steps.
  Steps run(const Collective& collective, std::span<std::byte* const> parts, bool direct, std::uint64_t& done);

 private:
  struct Run;
  using Memory = std::unique_ptr<std::byte[]>;
  // Between nodes: a slice under way, and its buffers. A rank with several rails has as many slices of a chunk.
  struct PipelineSlot {
    std::int64_t chunk = 0;
    int channel = 0;
    Slice slice;
    Memory sums;                    // of each of the node's blocks of ranks, one behind the other
    Memory narrow;                  // the same in the wire's format; then the result in that format
    Memory inbox;                   // the received sums of a round
    std::vector<const void*> come;  // the received sums, in the inbox or widened
    std::size_t next = 0;           // round that has started
  };

  std::int64_t most_received(std::int64_t slice) const;
  std::int64_t step_of(const Run& run) const;
  Steps on_node(Run& run);
  Steps scatter_on_node(Run& run);
  Steps between_nodes(Run& run);
  bool is_narrow(const Run& run) const;
  bool in_place(const Run& run) const;
  bool has_rail() const { return first_rail_ < end_rail_; }
  // A rank without a rail counts as if it had one.
  std::int64_t slices_a_chunk() const { return std::max(end_rail_ - first_rail_, 1); }
  // This rank's slices of a collective are numbered by chunk, then by rail.
  PipelineSlot& slot_of(std::int64_t i) { return slots_[static_cast<std::size_t>(i) % slots_.size()]; }
  std::byte* sums(const Run& run, const PipelineSlot& slot, int block, std::int64_t element);
  static std::byte* narrow(const PipelineSlot& slot, int block, std::int64_t element);
  static bool is_broadcast(const Run& run);
  const ReduceRounds& rounds_for(const Collective& collective) const;
  static std::size_t rounds_before_returns(const Run& run);
  static std::size_t all_rounds(const Run& run);
  Steps begin(Run& run);
  void add_blocks(Run& run, PipelineSlot& slot);
  bool progress(Run& run, PipelineSlot& slot);
  void start_round(Run& run, PipelineSlot& slot);
  void add_parts_of_root(Run& run, PipelineSlot& slot);
  void add_sums(Run& run, PipelineSlot& slot, const ReduceRound& round);
  void round_own_parts(Run& run, PipelineSlot& slot);
  void add_returns(Run& run, PipelineSlot& slot, const ReduceRound& round);
  void add_up(Run& run, PipelineSlot& slot, const ReduceRound& round);
  void widen(Run& run, PipelineSlot& slot, const ReduceRound& round);
  void spread(Run& run, PipelineSlot& slot);
  auto counted(Run& run, std::atomic<std::uint64_t> RankControl::*counter, std::int64_t k);
  bool progress_all(Run& run);
  std::int64_t most_in_flight(const Run& run) const;
  bool may_begin(const Run& run);
  Steps finish(Run& run);

  const Topology& topology_;
  const SumTree& tree_;
  NodeControl& control_;
  Network& network_;
  const WireFormat format_;
  const int first_rail_, end_rail_;  // this rank's
  const AlgorithmRows algorithms_;
  std::vector<ReduceRounds> rounds_;  // of each algorithm that may be chosen
  std::vector<PipelineSlot> slots_;   // at most kChunksInFlight
  Memory wide_;                       // the received sums of the round that is being added up, from the wire's format
  std::vector<void*> buffers_;
  std::vector<const void*> terms_;
  Messages messages_;
};

}  // namespace syncline::comm
