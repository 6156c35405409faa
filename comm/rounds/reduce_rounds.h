// The rounds of a large reduction between nodes: which sums nodes send to each other, and where they are added. Pure
// data.
//
// The elements are cut into parts, one or more for each node; all are equal, or those of each node. Two algorithms:
// - Direct: each node adds up one part, and sends its sum to all nodes. Two rounds.
// - Halves: along the tree of comm/rounds/sum_tree.h, whose leaves are the nodes' blocks of ranks. Where two subtrees
//   meet, each has the sum of every part at one of its leaves, the part's owner; the owners exchange halves of their
//   parts. If one subtree has fewer leaves, they own several parts each. Then the parts' sums go the same way back.
// Both add every element in the order of the tree.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/rounds/sum_tree.h"
#include "syncline/distributed/settings.h"

namespace syncline::comm {

// Elements, or parts of them: [begin, end).
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};
// The i-th of n parts of `count` elements; sizes differ by at most one.
Range part_of(std::int64_t count, std::int64_t i, std::int64_t n);
// The elements of a range of such parts.
Range elements_of(std::int64_t count, const Range& parts, std::int64_t n);

// A round of one node. It ends when its messages are sent and have come, and what has come is added.
struct ReduceRound {
  // Sums of these parts. Sums of a single block may travel in a shorter format.
  struct Message {
    int node = 0;
    Range parts;
    bool of_block = false;
    int block = 0;  // of a message that this node sends: the block whose sums it has
  };
  // Adds up `terms` in this order, into the sums of the node's block `to`. A term is one of the node's blocks, or
  // behind these a received message.
  struct Sum {
    Range parts;
    std::vector<int> terms;
    SumOrder order;
    int to = 0;
  };
  std::vector<Message> sends, receives;
  std::vector<Sum> sums;
};

// The rounds of one node. After `sums`, the owner of a part has its sum over all ranks, in its block 0; after `returns`
// every node has all parts there. A reduce_scatter ends after `sums`.
struct ReduceRounds {
  struct Place {
    int index = 0, parts = 1;  // among the parts of the same owner
  };
  std::vector<int> owners;    // nodes, by part
  std::vector<Place> places;  // by part
  std::vector<ReduceRound> sums, returns;
  // Of the job, equal on all nodes.
  Algorithm algorithm = Algorithm::kDirect;
  int most_blocks = 1;  // of a node
  std::int64_t parts() const { return std::ssize(owners); }
};

// The rounds of these nodes, in order. `tree`: of any node of the job.
std::vector<ReduceRounds> reduce_rounds(const SumTree& tree, Range nodes, Algorithm algorithm);

}  // namespace syncline::comm
