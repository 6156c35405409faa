#include "comm/shared/sum_tree.h"

#include <algorithm>
#include <bit>

namespace syncline::comm {
namespace {

// Terms that are single ranks: how a node's ranks are added.
std::vector<Block> ranks_of(const Block& block) {
  std::vector<Block> ranks;
  for (int r = block.begin; r < block.end; ++r) ranks.push_back({r, r + 1});
  return ranks;
}

}  // namespace

std::vector<Block> blocks_of(int begin, int end, int size) {
  std::vector<Block> blocks;
  for (int width = 1; begin < end; begin = blocks.back().end, width = 1) {
    const auto grown = [&] { return std::min(begin + 2 * width, size); };
    while (begin + width < end && begin % (2 * width) == 0 && grown() <= end) width *= 2;
    blocks.push_back({begin, std::min(begin + width, size)});
  }
  return blocks;
}

std::size_t left_terms(std::span<const Block> terms) {
  const int begin = terms.front().begin, ranks = terms.back().end - begin;
  const int middle = begin + static_cast<int>(std::bit_ceil(static_cast<unsigned>(ranks)) / 2);
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
  for (int n = 0; n < topology.node_count(); ++n) {
    const std::vector<int>& ranks = topology.nodes[static_cast<std::size_t>(n)];
    first_block.push_back(static_cast<int>(terms.size()));
    for (const Block& block : blocks_of(ranks.front(), ranks.back() + 1, topology.size())) {
      if (n == topology.node) own.push_back(order_of(ranks_of(block), block.begin - ranks.front()));
      terms.push_back(block);
      nodes.push_back(n);
    }
  }
  first_block.push_back(static_cast<int>(terms.size()));
  all = order_of(terms);
}

}  // namespace syncline::comm
