// The order of all sums over ranks: one complete binary tree. A rank has one or two places at its bottom (first_place).
//
// A value of the tree is the sum of a block of places, [j * 2^h, (j + 1) * 2^h): the left half's sum plus the right
// half's. So a sum over 5 ranks is (0 + 1) + ((2 + 3) + 4), whichever ranks share a node. A node whose ranks are no
// block has several, and sends the sum of each.
#pragma once

#include <span>
#include <vector>

#include "comm/rounds/topology.h"

namespace syncline::comm {

// Places [begin, end).
struct Block {
  int begin = 0, end = 0;
  friend bool operator==(const Block&, const Block&) = default;
};

// The largest blocks of the tree that make up places [begin, end), ascending.
std::vector<Block> blocks_of(int begin, int end);
// The same of ranks [first, last] of a job of `size` ranks.
std::vector<Block> blocks_of_ranks(int first, int last, int size);

// How terms are added: a program for a stack. A number pushes the term of this index, kAdd replaces the two values on
// top by their sum.
inline constexpr int kAdd = -1;
using SumOrder = std::vector<int>;

// The order for adjacent blocks that make up a block. The first term has the index `first`.
SumOrder order_of(std::span<const Block> terms, int first = 0);
// How many of these blocks make up the left half of the sum.
std::size_t left_terms(std::span<const Block> terms);

// The sums of one rank's node, and between nodes.
struct SumTree {
  explicit SumTree(const Topology& topology);

  std::vector<SumOrder> own;     // of each block of this node, over the local ranks
  std::vector<Block> terms;      // all blocks of the job, and
  std::vector<int> nodes;        // the node of each
  std::vector<int> first_block;  // by node: the number of its first block in the job; last: the number of blocks
  SumOrder all;                  // over all blocks of the job

  int node_count() const { return static_cast<int>(first_block.size()) - 1; }
  int node_of(int block) const { return nodes[static_cast<std::size_t>(block)]; }
  int own_blocks() const { return static_cast<int>(own.size()); }
  int blocks() const { return first_block.back(); }
  int first_of(int node) const { return first_block[static_cast<std::size_t>(node)]; }
  int blocks(int node) const { return first_of(node + 1) - first_of(node); }
  int most_blocks() const;  // of a node
};

}  // namespace syncline::comm
