#include "io/data/data_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

using Order = std::vector<std::int64_t>;

TEST(DataOrder, IsAPermutation) {
  for (const std::int64_t rows : {0, 1, 2, 7, 60000}) {
    Order order = epoch_order(3, 4, rows), sorted(static_cast<std::size_t>(rows));
    std::sort(order.begin(), order.end());
    std::iota(sorted.begin(), sorted.end(), 0);
    EXPECT_EQ(order, sorted);
  }
}

TEST(DataOrder, DependsOnItsArgumentsOnly) { EXPECT_EQ(epoch_order(1, 2, 1000), epoch_order(1, 2, 1000)); }

TEST(DataOrder, DiffersBetweenSeedsAndEpochs) {
  EXPECT_NE(epoch_order(1, 0, 100), epoch_order(1, 1, 100));
  EXPECT_NE(epoch_order(1, 0, 100), epoch_order(2, 0, 100));
  EXPECT_NE(epoch_order(1, 0, 100), epoch_order(0, 1, 100));
}

// Resumed runs depend on exactly this order; a change breaks every checkpoint within an epoch.
TEST(DataOrder, StaysWhatItIs) {
  EXPECT_EQ(epoch_order(0, 0, 10), (Order{0, 1, 7, 2, 5, 4, 9, 3, 8, 6}));
  EXPECT_EQ(epoch_order(42, 3, 10), (Order{5, 0, 2, 7, 6, 8, 3, 9, 1, 4}));
}

TEST(DataOrder, EachPlaceIsEquallyLikely) {
  constexpr int kRows = 5, kEpochs = 20000;
  std::array<std::array<int, kRows>, kRows> counts{};
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const Order order = epoch_order(9, epoch, kRows);
    for (int place = 0; place < kRows; ++place) ++counts[place][order[place]];
  }
  // 4000 each are expected, with a standard deviation of 57.
  for (const auto& row : counts)
    for (const int count : row) EXPECT_NEAR(count, kEpochs / kRows, 300);
}

TEST(DataOrder, RefusesNegativeCounts) {
  EXPECT_CONTAINS(message_of<ValueError>([] { epoch_order(0, -1, 5); }), "epoch -1");
  EXPECT_CONTAINS(message_of<ValueError>([] { epoch_order(0, 0, -5); }), "rows -5");
}

}  // namespace
}  // namespace syncline::io
