// How the nodes of a job meet: messages after which each node knows something of every node. Pure data.
//
// A message tells what its sender knows: a run of neighbouring nodes. What is told may be combined along the run, for
// sums along the tree of comm/rounds/sum_tree.h. Nodes tell each other directly, in one round; or the two halves of a
// block of the tree over the nodes exchange, for larger and larger blocks, in log2(nodes) rounds.
#pragma once

#include <vector>

#include "syncline/distributed/settings.h"

namespace syncline::comm {

// Nodes [begin, end).
struct NodeRun {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
  friend bool operator==(const NodeRun&, const NodeRun&) = default;
};

// A round of one node. It sends to all nodes in `to` what it knows at the round's begin. The round ends when these
// messages are sent, and those of `from` have come.
struct MeetingRound {
  struct Message {
    int node = 0;
    NodeRun tells;  // the nodes whose values the message has, next to the receiver's run
  };
  std::vector<int> to;
  std::vector<Message> from;
};

// The rounds of `node` among `nodes`.
std::vector<MeetingRound> meeting_rounds(int node, int nodes, Algorithm algorithm);

// What a node knows after the messages of `round`, if it knew `known` before.
NodeRun known_after(const MeetingRound& round, NodeRun known);

}  // namespace syncline::comm
