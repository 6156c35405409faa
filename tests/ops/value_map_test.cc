// Tables keyed by values: each output of each node is a key of its own, also when nodes are freed.
#include "ops/graph/value_map.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace syncline::testing {
namespace {

Expr value_of(std::uint64_t id, int output = 0) {
  const auto node = std::make_shared<Node>();
  node->id = id;
  return Expr(node, output);
}

TEST(ValueMap, KeysAreOutputsOfNodes) {
  const Expr x = value_of(7), second(x.handle(), 1);
  ValueMap<int> map;
  map[x] = 1;
  EXPECT_EQ(map.find(second), nullptr);
  map[second] = 2;
  map[Expr()] = 3;
  EXPECT_EQ(map.at(x), 1);
  EXPECT_EQ(map.at(second), 2);
  EXPECT_EQ(map.at(Expr()), 3);
  EXPECT_EQ(map.find(value_of(8)), nullptr);
  EXPECT_EQ(map.try_emplace(x, 4).first, 1);
  EXPECT_FALSE(map.try_emplace(x, 4).second);
}

// Ids with gaps, ids of equal remainders, and a node of many outputs, through several growths.
TEST(ValueMap, FindsAllKeysAgain) {
  for (const std::uint64_t step : {1u, 8u, 64u, 4096u}) {
    ValueMap<std::uint64_t> map;
    for (std::uint64_t i = 0; i < 5000; ++i) map[value_of(1 + i * step)] = i;
    for (std::uint64_t i = 0; i < 5000; ++i) ASSERT_EQ(map.at(value_of(1 + i * step)), i) << step;
    EXPECT_FALSE(map.contains(value_of(2 + 5000 * step)));
  }
  const Expr node = value_of(5);
  ValueMap<int> map;
  for (int i = 0; i < 5000; ++i) map[Expr(node.handle(), i)] = i;
  const ValueMap<int> copy = map;
  map.clear();
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(copy.at(Expr(node.handle(), i)), i);
  EXPECT_FALSE(map.contains(node));
}

}  // namespace
}  // namespace syncline::testing
