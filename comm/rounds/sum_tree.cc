#include "comm/rounds/sum_tree.h"

#include <algorithm>

#include "syncline/distributed/communicator.h"

namespace syncline::comm {
namespace {

// How a node adds the ranks of one of its blocks.
SumOrder order_of_ranks(const Block& block, const std::vector<int>& ranks, int size) {
  std::vector<Block> terms;
  int before = 0;
  for (const int r : ranks) {
    const Block rank{first_place(r, size), first_place(r + 1, size)};
    if (rank.begin < block.begin) ++before;
    else if (rank.end <= block.end) terms.push_back(rank);
  }
  return order_of(terms, before);
}

}  // namespace

std::vector<Block> blocks_of(int begin, int end) {
  std::vector<Block> blocks;
  for (int width = 1; begin < end; begin += width, width = 1) {
    while (begin % (2 * width) == 0 && begin + 2 * width <= end) width *= 2;
    blocks.push_back({begin, begin + width});
  }
  return blocks;
}

std::vector<Block> blocks_of_ranks(int first, int last, int size) {
  return blocks_of(first_place(first, size), first_place(last + 1, size));
}

std::size_t left_terms(std::span<const Block> terms) {
  const int middle = (terms.front().begin + terms.back().end) / 2;
  const auto right = std::find_if(terms.begin(), terms.end(), [&](const Block& term) { return term.begin >= middle; });
  return static_cast<std::size_t>(right - terms.begin());
}

SumOrder order_of(std::span<const Block> terms, int first) {
  if (terms.size() == 1) return {first};
  const std::size_t left = left_terms(terms);
  SumOrder order = order_of(terms.first(left), first);
  const SumOrder rest = order_of(terms.subspan(left), first + static_cast<int>(left));
  order.insert(order.end(), rest.begin(), rest.end());
  order.push_back(kAdd);
  return order;
}

SumTree::SumTree(const Topology& topology) {
  const int size = topology.size();
  for (int n = 0; n < topology.node_count(); ++n) {
    const std::vector<int>& ranks = topology.nodes[static_cast<std::size_t>(n)];
    first_block.push_back(static_cast<int>(terms.size()));
    for (const Block& block : blocks_of_ranks(ranks.front(), ranks.back(), size)) {
      if (n == topology.node) own.push_back(order_of_ranks(block, ranks, size));
      terms.push_back(block);
      nodes.push_back(n);
    }
  }
  first_block.push_back(static_cast<int>(terms.size()));
  all = order_of(terms);
}

int SumTree::most_blocks() const {
  int most = 1;
  for (int n = 0; n < node_count(); ++n) most = std::max(most, blocks(n));
  return most;
}

}  // namespace syncline::comm
