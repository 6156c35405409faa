// The order of sums: one expression per number of ranks, whatever the layout.
#include "comm/rounds/sum_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <string>

#include "tests/comm/collective_checks.h"

namespace syncline::comm {
namespace {

// What the stack program computes, as text.
std::string expression(const SumOrder& order, const std::vector<std::string>& terms) {
  std::vector<std::string> stack;
  for (const int step : order) {
    if (step != kAdd) {
      stack.push_back(terms.at(static_cast<std::size_t>(step)));
      continue;
    }
    const std::string right = stack.back();
    stack.pop_back();
    stack.back() = "(" + stack.back() + right + ")";
  }
  EXPECT_EQ(stack.size(), 1u);
  return stack.front();
}

std::string expected_expression(int first, int ranks) {
  if (ranks == 1) return " " + std::to_string(first);
  const int left = static_cast<int>(left_half(static_cast<std::size_t>(ranks)));
  return "(" + expected_expression(first, left) + expected_expression(first + left, ranks - left) + ")";
}

TEST(SumTree, BlocksAreTheLargestOfTheTree) {
  EXPECT_EQ(blocks_of(0, 4), (std::vector<Block>{{0, 4}}));
  EXPECT_EQ(blocks_of(0, 3), (std::vector<Block>{{0, 2}, {2, 3}}));
  EXPECT_EQ(blocks_of(3, 6), (std::vector<Block>{{3, 4}, {4, 6}}));
  EXPECT_EQ(blocks_of(1, 8), (std::vector<Block>{{1, 2}, {2, 4}, {4, 8}}));
  EXPECT_EQ(blocks_of_ranks(0, 2, 3), (std::vector<Block>{{0, 4}}));
  EXPECT_EQ(blocks_of_ranks(1, 3, 5), (std::vector<Block>{{2, 4}, {4, 6}}));
  EXPECT_EQ(blocks_of_ranks(511, 999, 1000), (std::vector<Block>{{511, 512}, {512, 1024}}));
}

// Up to the height of the tree that the sums on the stack have room for.
TEST(RankSum, AddsAnyNumberOfTerms) {
  for (int ranks = 1; ranks <= RankSum::kMostRanks; ++ranks) {
    std::vector<std::vector<float>> terms(static_cast<std::size_t>(ranks));
    std::vector<const void*> at;
    for (std::size_t r = 0; r < terms.size(); ++r) {
      for (int i = 0; i < 5; ++i) terms[r].push_back(1.f / static_cast<float>(1 + i + 5 * static_cast<int>(r)));
      at.push_back(terms[r].data());
    }
    std::vector<float> sum(5);
    const RankSum add(ranks);
    add(DType::kFloat32, at, sum.data(), 5);
    EXPECT_EQ(sum, sum_in_pairs(terms)) << ranks << " ranks";
  }
  EXPECT_THROW(RankSum(0), ValueError);
  EXPECT_THROW(RankSum(257), ValueError);
}

TEST(SumTree, ARankHasOneOrTwoPlaces) {
  for (int size = 1; size < 300; ++size) {
    const int places = static_cast<int>(std::bit_ceil(static_cast<unsigned>(size)));
    EXPECT_EQ(first_place(0, size), 0);
    EXPECT_EQ(first_place(size, size), places);
    for (int r = 0; r < size; ++r) {
      const int width = first_place(r + 1, size) - first_place(r, size);
      EXPECT_TRUE(width == 1 || (width == 2 && first_place(r, size) % 2 == 0)) << r << " of " << size;
    }
  }
}

// Nodes of random sizes: each adds its blocks, then all blocks are added.
TEST(SumTree, EveryLayoutHasOneExpression) {
  std::mt19937 engine(7);
  for (int run = 0; run < 3000; ++run) {
    const int ranks = 1 + static_cast<int>(engine() % (run % 10 == 0 ? 300 : 20));
    std::vector<int> node_of_rank{0};
    const unsigned new_node = 1 + engine() % 6;
    while (static_cast<int>(node_of_rank.size()) < ranks)
      node_of_rank.push_back(node_of_rank.back() + (engine() % new_node == 0 ? 1 : 0));
    std::vector<std::string> blocks;
    const Topology first = make_topology(0, node_of_rank);
    SumOrder all;
    for (const std::vector<int>& of_node : first.nodes) {
      const SumTree tree(make_topology(of_node.front(), node_of_rank));
      std::vector<std::string> terms;
      for (const int rank : of_node) terms.push_back(" " + std::to_string(rank));
      EXPECT_EQ(tree.own_blocks(), tree.blocks(static_cast<int>(&of_node - first.nodes.data())));
      for (const SumOrder& order : tree.own) blocks.push_back(expression(order, terms));
      all = tree.all;
    }
    ASSERT_EQ(expression(all, blocks), expected_expression(0, ranks)) << first.describe();
  }
}

TEST(SumTree, NodesOfTwoFourOrEightRanksAreOneBlock) {
  for (const int ranks : {1, 2, 4, 8})
    for (int nodes = 1; nodes < 40; ++nodes)
      for (int n = 0; n < nodes; ++n)
        EXPECT_EQ(blocks_of_ranks(n * ranks, (n + 1) * ranks - 1, nodes * ranks).size(), 1u) << nodes << " x " << ranks;
}

// The last node may have other ranks; very few of them split the node before it.
TEST(SumTree, AShortLastNodeSplitsFewNodes) {
  for (const int ranks : {2, 4, 16})
    for (int nodes = 1; nodes < 80; ++nodes)
      for (int last = 1; last < 2 * ranks; ++last) {
        const int size = nodes * ranks + last;
        std::size_t split = 0, most = 0;
        for (int n = 0; n < nodes; ++n) {
          const std::size_t blocks = blocks_of_ranks(n * ranks, (n + 1) * ranks - 1, size).size();
          split += blocks > 1 ? 1 : 0;
          most = std::max(most, blocks);
        }
        EXPECT_LE(split, 1u) << nodes << " x " << ranks << " + " << last;
        EXPECT_LE(most, 5u) << nodes << " x " << ranks << " + " << last;
      }
}

}  // namespace
}  // namespace syncline::comm
