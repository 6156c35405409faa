// Meeting: how the nodes agree on a collective. A small collective's values travel with the agreement.
//
// The first ranks of the nodes exchange messages in the rounds of comm/rounds/meeting_rounds.h. A message has a summary
// of the headers of a run of nodes and, of a small collective, that run's values: of a reduction the sums of its blocks
// of ranks (comm/rounds/sum_tree.h), of a gather the ranks' bytes, of a broadcast the data. Once two headers differ,
// messages have no values.
//
// NodeWire owns and drives it. Nothing blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/rounds/algorithms.h"
#include "comm/rounds/meeting_rounds.h"
#include "comm/rounds/sum_tree.h"
#include "comm/shared/node.h"
#include "comm/shared/node_control.h"

namespace syncline::comm {

class Meeting {
 public:
  Meeting(const Topology& topology, const SumTree& tree, AlgorithmRows algorithms, NodeControl& control,
          Network& network);

  // Of this node's ranks, which have all come to the round: whether their data lie at the same offset of every rank's
  // part of the shared region, or the rank is alone.
  bool direct_on_node(std::uint64_t round) const;
  // Of the same ranks.
  Summary summary_of_node(std::uint64_t round) const;
  // Writes this node's values of a small collective: on one node, the result.
  void write_values(const Collective& collective, std::uint64_t round, std::byte* to);

  // The first rank of the node begins, and calls progress() until it returns true. All ranks have agreed then, or not:
  // see NodeControl::summary(). NodeControl::answer() has a small collective's result.
  void begin(const Collective& collective, std::uint64_t round);
  bool progress();

 private:
  // What is known of a run of nodes.
  struct Known {
    NodeRun nodes;
    int blocks = 0;
  };
  // A round, and how its values are combined. Parts are in the order of the nodes: number 0 is what was known before,
  // number i the i-th message's.
  struct Round {
    MeetingRound messages;
    std::vector<std::pair<int, Known>> parts;
    std::vector<SumOrder> sums;  // of each block that is known afterwards, over the blocks of the parts
    Known known;
  };

  std::vector<Block> blocks_in(NodeRun nodes) const;
  Known known_of(NodeRun nodes) const;
  Round round_of(const MeetingRound& messages, NodeRun known) const;
  using Memory = std::unique_ptr<std::byte[]>;
  Summary& summary() { return *reinterpret_cast<Summary*>(buffer()); }
  std::byte* buffer() { return buffers_[filled_].get(); }
  std::size_t bytes_of(const Known& known) const;
  void start_round();
  void combine(const Round& round);
  void combine_values(const Round& round, std::byte* to);
  const std::byte* part(int number) { return number == 0 ? buffer() : inbox_[index(number - 1)].get(); }
  static std::size_t index(int number) { return static_cast<std::size_t>(number); }

  const Topology& topology_;
  const SumTree& tree_;
  NodeControl& control_;
  Network& network_;
  const Known own_;  // of this node
  std::vector<Round> rounds_;

  // The meeting under way.
  const Collective* collective_ = nullptr;
  std::uint64_t number_ = 0;  // of the collective
  std::size_t next_ = 0;      // round that has started
  Known known_;
  Memory buffers_[2];  // a summary and values: known, and next to be known
  std::size_t filled_ = 0;
  std::vector<Memory> inbox_;
  std::size_t capacity_ = 0;  // of a buffer
  std::vector<const void*> terms_;
  std::vector<std::int64_t> begin_;  // of each node's bytes in a gather
  Messages messages_;
};

}  // namespace syncline::comm
