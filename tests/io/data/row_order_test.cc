#include "io/data/row_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "io/data/data_order.h"
#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

using Order = std::vector<std::int64_t>;

Order whole(RowOrder& order, std::int64_t epoch, std::int64_t rows) {
  Order all;
  while (static_cast<std::int64_t>(all.size()) < rows) {
    const auto position = static_cast<std::int64_t>(all.size());
    const RowOrder::Window window = order.window_of(epoch, position);
    EXPECT_EQ(window.begin, position);
    EXPECT_EQ(order.window_of(epoch, window.end - 1), window);
    const Order part = order.rows_of(window);
    EXPECT_EQ(static_cast<std::int64_t>(part.size()), window.end - window.begin);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

Order counted(std::int64_t rows) {
  Order order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

TEST(RowOrder, OfRowsIsTheCheckpointsOrder) {
  RowOrder order(1000, Shuffle::kRows, 5);
  EXPECT_EQ(whole(order, 3, 1000), epoch_order(5, 3, 1000));
}

TEST(RowOrder, WithoutShufflingIsTheFilesOrder) {
  RowOrder order(200000, Shuffle::kNone, 5);
  EXPECT_EQ(whole(order, 3, 200000), counted(200000));
}

TEST(RowOrder, OfBlocksHasEachRowOnce) {
  for (const std::int64_t rows : {1, 7, 64, 1000, 1001})
    for (const BlockShuffle blocks : {BlockShuffle{1, 1}, {7, 3}, {10, 10}, {64, 1000}, {5000, 2}}) {
      RowOrder order(rows, Shuffle::kBlocks, 2, blocks);
      Order all = whole(order, 1, rows);
      std::sort(all.begin(), all.end());
      EXPECT_EQ(all, counted(rows));
    }
}

TEST(RowOrder, OfBlocksReadsWholeBlocksAWindow) {
  RowOrder order(1000, Shuffle::kBlocks, 2, {10, 4});
  EXPECT_EQ(order.largest_window(), 40);
  std::vector<int> uses(100, 0);
  for (std::int64_t position = 0; position < 1000; position += 40) {
    Order rows = order.rows_of(order.window_of(0, position));
    EXPECT_FALSE(std::is_sorted(rows.begin(), rows.end()));
    std::sort(rows.begin(), rows.end());
    for (std::size_t i = 0; i < rows.size(); i += 10) {
      EXPECT_EQ(rows[i] % 10, 0);
      EXPECT_EQ(rows[i + 9], rows[i] + 9);
      ++uses[static_cast<std::size_t>(rows[i] / 10)];
    }
  }
  EXPECT_EQ(uses, std::vector<int>(100, 1));
}

TEST(RowOrder, OfBlocksDependsOnSeedAndEpochAlone) {
  RowOrder a(1000, Shuffle::kBlocks, 2, {10, 4}), b(1000, Shuffle::kBlocks, 2, {10, 4}),
      c(1000, Shuffle::kBlocks, 3, {10, 4});
  const Order first = whole(a, 0, 1000), second = whole(a, 1, 1000);
  EXPECT_NE(first, second);
  EXPECT_EQ(whole(b, 1, 1000), second);  // without epoch 0 first
  EXPECT_EQ(whole(a, 0, 1000), first);   // back to epoch 0
  EXPECT_NE(whole(c, 0, 1000), first);
}

// Resumed runs depend on exactly this order.
TEST(RowOrder, OfBlocksStaysWhatItIs) {
  RowOrder order(12, Shuffle::kBlocks, 42, {2, 3});
  EXPECT_EQ(whole(order, 1, 12), (Order{11, 1, 0, 10, 9, 8, 5, 7, 3, 4, 6, 2}));
}

// In a sorted file each window is a fair sample of the blocks (BlockShuffle in syncline/data/options.h).
TEST(RowOrder, OfBlocksMixesEachWindow) {
  RowOrder order(100000, Shuffle::kBlocks, 1, {100, 100});
  for (std::int64_t position = 0; position < 100000; position += 10000) {
    double sum = 0;
    for (const std::int64_t row : order.rows_of(order.window_of(0, position))) sum += static_cast<double>(row);
    // The mean of 100 blocks out of 1000: 50000 with a standard deviation of 2740.
    EXPECT_NEAR(sum / 10000, 50000, 5 * 2740);
  }
}

TEST(RowOrder, RefusesCountsThatAreNone) {
  EXPECT_CONTAINS(message_of<ValueError>([] { RowOrder(10, Shuffle::kBlocks, 0, {0, 1}); }), "in blocks of 0");
  EXPECT_CONTAINS(message_of<ValueError>([] { RowOrder(-1, Shuffle::kRows, 0); }), "-1 rows");
  RowOrder order(10, Shuffle::kBlocks, 0);
  EXPECT_CONTAINS(message_of<ValueError>([&] { order.window_of(-1, 0); }), "epoch -1");
}

}  // namespace
}  // namespace syncline::io
