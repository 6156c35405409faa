// Which ranks are on which node, and which rails they have.
#include "comm/rounds/topology.h"

#include <gtest/gtest.h>

#include <vector>

namespace syncline::comm {
namespace {

TEST(Topology, CountsNodesAndLocalRanks) {
  const std::vector<int> nodes{7, 7, 7, 3, 3};
  const Topology topology = make_topology(4, nodes);
  EXPECT_EQ(topology.nodes, (std::vector<std::vector<int>>{{0, 1, 2}, {3, 4}}));
  EXPECT_EQ(topology.node, 1);
  EXPECT_EQ(topology.local, 1);
  EXPECT_EQ(topology.size(), 5);
}

// For each node: the rails of each of its ranks.
std::vector<std::vector<std::vector<int>>> rails_of(const std::vector<int>& node_of_rank) {
  std::vector<std::vector<std::vector<int>>> all;
  for (int r = 0; r < static_cast<int>(node_of_rank.size()); ++r) {
    const Topology topology = make_topology(r, node_of_rank);
    if (topology.local == 0) all.emplace_back();
    std::vector<int>& own = all.back().emplace_back();
    for (int rail = topology.first_rail(topology.local); rail < topology.first_rail(topology.local + 1); ++rail) {
      own.push_back(rail);
      for (int from = 0; from < static_cast<int>(node_of_rank.size()); ++from)
        EXPECT_EQ(make_topology(from, node_of_rank).rank_on_rail(rail, topology.node), r);
    }
  }
  return all;
}

// There are as many rails as most ranks need. A smaller node has all of them, a larger one has ranks without.
TEST(Topology, HasTheRailsOfMostRanks) {
  using Rails = std::vector<std::vector<std::vector<int>>>;
  EXPECT_EQ(rails_of({0, 0, 1, 1, 2}), (Rails{{{0}, {1}}, {{0}, {1}}, {{0, 1}}}));
  EXPECT_EQ(rails_of({0, 0, 1, 1, 2, 2, 2}), (Rails{{{0}, {1}}, {{0}, {1}}, {{0}, {1}, {}}}));
  EXPECT_EQ(rails_of({0, 0, 0, 1, 1}), (Rails{{{0}, {1}, {2}}, {{0, 1}, {2}}}));
  EXPECT_EQ(rails_of({0, 0, 1, 2}), (Rails{{{0}, {1}}, {{0, 1}}, {{0, 1}}}));
  EXPECT_EQ(rails_of({0, 1, 2, 2, 3}), (Rails{{{0}}, {{0}}, {{0}, {}}, {{0}}}));
  std::vector<int> large;
  for (const int ranks : {64, 64, 5})
    large.insert(large.end(), static_cast<std::size_t>(ranks), large.empty() ? 0 : large.back() + 1);
  std::vector<std::size_t> on_small;
  const auto rails = rails_of(large);
  for (const std::vector<int>& own : rails.back()) on_small.push_back(own.size());
  EXPECT_EQ(on_small, (std::vector<std::size_t>{13, 13, 13, 13, 12}));
}

TEST(Topology, OrdersRanksByNode) {
  EXPECT_EQ(ranks_by_node(std::vector<int>{7, 3, 7, 3, 7}), (std::vector<int>{0, 2, 4, 1, 3}));
  EXPECT_EQ(ranks_by_node(std::vector<int>{2, 2, 1}), (std::vector<int>{0, 1, 2}));
}

}  // namespace
}  // namespace syncline::comm
