#include "syncline/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "io/data/data_order.h"
#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

using Rows = std::vector<std::int64_t>;

// Row r holds the value r. Counts the calls and the rows read, and can fail at one row.
class CountingSource : public Source {
 public:
  struct Counts {
    std::atomic<std::int64_t> rows{0}, calls{0};
    std::atomic<std::int64_t> broken{-1};  // this row cannot be read
  };
  CountingSource(std::int64_t rows, Counts& counts)
      : Source({{"row", DType::kInt64, {}}, {"twice", DType::kFloat32, {2}}}, rows), counts_(counts) {}

  void read_run(std::int64_t begin, std::int64_t count, std::span<Array> targets, std::int64_t at) override {
    ++counts_.calls;
    counts_.rows += count;
    for (std::int64_t i = 0; i < count; ++i) {
      if (begin + i == counts_.broken) fail<IoError>("row ", begin + i, " is broken");
      targets[0].data<std::int64_t>()[at + i] = begin + i;
      for (int j = 0; j < 2; ++j) targets[1].data<float>()[(at + i) * 2 + j] = static_cast<float>(begin + i);
    }
  }

 private:
  Counts& counts_;
};
constexpr std::size_t kRowBytes = 16;

Rows rows_of(const Batch& batch) {
  const auto rows = batch[0].values<std::int64_t>();
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(batch[1].data<float>()[2 * i + 1], static_cast<float>(rows[i]));
  return {rows.begin(), rows.end()};
}

struct Case {
  const char* name;
  Shuffle shuffle;
  bool fits;
  std::int64_t prefetch;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class LoaderOrder : public testing::TestWithParam<Case> {
 protected:
  static constexpr std::int64_t kRows = 1003, kBatch = 32, kSteps = 32;

  static LoaderOptions options() {
    const Case& c = GetParam();
    return {.batch = kBatch,
            .shuffle = c.shuffle,
            .blocks = {.block = 10, .window = 7},
            .seed = 11,
            // The limit covers the rows, windows with their index, and batches.
            .memory = c.fits ? std::size_t{1} << 20 : 14000,
            .prefetch = c.prefetch};
  }
  std::unique_ptr<Loader> loader(const LoaderOptions& options) {
    return std::make_unique<Loader>(std::make_unique<CountingSource>(kRows, counts_), options);
  }
  // Row numbers of an epoch, batch by batch.
  std::vector<Rows> epoch(Loader& loader, std::int64_t epoch) {
    std::vector<Rows> batches;
    for (std::int64_t step = 0; step < loader.steps(); ++step) batches.push_back(rows_of(loader.batch(epoch, step)));
    return batches;
  }

  CountingSource::Counts counts_;
};

TEST_P(LoaderOrder, HasEachRowOnceAnEpoch) {
  const auto whole = loader(options());
  EXPECT_EQ(whole->steps(), kSteps);
  std::vector<Rows> before;
  for (std::int64_t e = 0; e < 3; ++e) {
    const std::vector<Rows> batches = epoch(*whole, e);
    EXPECT_EQ(batches == before, e > 0 && GetParam().shuffle == Shuffle::kNone);
    Rows all;
    for (const Rows& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
    if (GetParam().shuffle == Shuffle::kRows) {
      EXPECT_EQ(all, epoch_order(11, e, kRows));
    }
    std::sort(all.begin(), all.end());
    Rows expected(kRows);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(all, expected);
    before = batches;
  }
}

TEST_P(LoaderOrder, RanksHaveTheRowsOfOneProcess) {
  const auto whole = loader(options());
  std::vector<std::vector<std::int64_t>> first_shares{{0, 1, 2}, {0, 1, 2, 3}, {0, 2, 4, 8}};
  first_shares.emplace_back(41);
  std::iota(first_shares.back().begin(), first_shares.back().end(), 0);
  for (const std::vector<std::int64_t>& first : first_shares) {
    const std::int64_t ranks = std::ssize(first) - 1;
    std::vector<std::unique_ptr<Loader>> parts;
    for (std::size_t rank = 0; rank + 1 < first.size(); ++rank) {
      LoaderOptions own = options();
      own.rank = first[rank];
      own.ranks = first.back();
      own.shares = first[rank + 1] - first[rank];
      parts.push_back(loader(own));
    }
    for (std::int64_t e = 0; e < 2; ++e)
      for (std::int64_t step = 0; step < kSteps; ++step) {
        Rows together;
        for (const auto& part : parts) {
          const Rows own = rows_of(part->batch(e, step));
          together.insert(together.end(), own.begin(), own.end());
        }
        ASSERT_EQ(together, rows_of(whole->batch(e, step))) << ranks << " ranks, epoch " << e << ", step " << step;
      }
  }
}

TEST_P(LoaderOrder, ResumesAnywhere) {
  const auto whole = loader(options());
  const std::vector<Rows> first = epoch(*whole, 0), second = epoch(*whole, 1);
  for (std::int64_t step = 0; step < kSteps; step += 5) {
    const auto resumed = loader(options());
    for (std::int64_t s = step; s < kSteps; ++s)
      ASSERT_EQ(rows_of(resumed->batch(0, s)), first[static_cast<std::size_t>(s)]);
    ASSERT_EQ(rows_of(resumed->batch(1, 0)), second[0]);
  }
  // One loader can move forward and back.
  for (const std::int64_t step : {31, 3, 3, 4, 0, 17, 18})
    ASSERT_EQ(rows_of(whole->batch(0, step)), first[static_cast<std::size_t>(step)]);
}

TEST_P(LoaderOrder, DoesNotDependOnMemory) {
  LoaderOptions large = options();
  large.memory = std::size_t{1} << 30;
  large.prefetch = 5;
  EXPECT_EQ(epoch(*loader(options()), 1), epoch(*loader(large), 1));
}

TEST_P(LoaderOrder, TakesTheFirstRows) {
  LoaderOptions few = options();
  few.rows = 100;
  Rows all;
  for (const Rows& batch : epoch(*loader(few), 0)) all.insert(all.end(), batch.begin(), batch.end());
  EXPECT_EQ(all.size(), 100u);
  EXPECT_EQ(*std::max_element(all.begin(), all.end()), 99);
}

TEST_P(LoaderOrder, TellsOfAnErrorWhereItIs) {
  if (GetParam().fits) return;  // then the constructor reads and throws: see below
  const auto broken = loader(options());
  const std::vector<Rows> good = epoch(*broken, 0);
  counts_.broken = good[10][3];
  const auto again = loader(options());
  std::int64_t step = 0;
  const auto read_on = [&] {
    for (; step < kSteps; ++step) ASSERT_EQ(rows_of(again->batch(0, step)), good[static_cast<std::size_t>(step)]);
  };
  const std::string problem = join_text("row ", good[10][3], " is broken");
  EXPECT_EQ(message_of(read_on), problem);
  EXPECT_LE(step, 10);
  if (GetParam().shuffle != Shuffle::kBlocks) {
    EXPECT_EQ(step, 10);
  }
  EXPECT_EQ(message_of(read_on), problem);
  counts_.broken = -1;
  read_on();
  EXPECT_EQ(step, kSteps);
}

TEST_P(LoaderOrder, RefusesStepsThatAreNotThere) {
  const auto whole = loader(options());
  for (const auto& at : {std::pair<std::int64_t, std::int64_t>{0, kSteps}, {0, -1}, {-1, 0}})
    EXPECT_CONTAINS(message_of<ValueError>([&] { whole->batch(at.first, at.second); }), "an epoch has 32 steps");
}

INSTANTIATE_TEST_SUITE_P(
    Ways, LoaderOrder,
    testing::Values(Case{"memory_rows", Shuffle::kRows, true, 2}, Case{"memory_blocks", Shuffle::kBlocks, true, 2},
                    Case{"memory_unshuffled", Shuffle::kNone, true, 1}, Case{"disk_rows", Shuffle::kRows, false, 2},
                    Case{"disk_blocks", Shuffle::kBlocks, false, 2}, Case{"disk_unshuffled", Shuffle::kNone, false, 3},
                    Case{"disk_rows_no_thread", Shuffle::kRows, false, 0},
                    Case{"disk_blocks_no_thread", Shuffle::kBlocks, false, 0}),
    [](const auto& info) { return info.param.name; });

std::unique_ptr<Loader> make(CountingSource::Counts& counts, std::int64_t rows, const LoaderOptions& options) {
  return std::make_unique<Loader>(std::make_unique<CountingSource>(rows, counts), options);
}

TEST(Loader, ReadsWhatFitsOnce) {
  CountingSource::Counts counts;
  const auto loader = make(counts, 1000, {.batch = 100});
  for (std::int64_t step = 0; step < 30; ++step) loader->batch(step / 10, step % 10);
  EXPECT_EQ(counts.calls, 1);
  EXPECT_EQ(counts.rows, 1000);
}

// The thread must pause once `prefetch` batches are ready, so it has read at most their rows.
TEST(Loader, MakesNoMoreThanWasAskedFor) {
  CountingSource::Counts counts;
  const auto loader =
      make(counts, 100000, {.batch = 10, .shuffle = Shuffle::kNone, .memory = 100 * kRowBytes, .prefetch = 4});
  EXPECT_EQ(counts.rows, 0);
  for (std::int64_t step = 0; step < 50; ++step) {
    loader->batch(0, step);
    EXPECT_LE(counts.rows, (step + 1 + 4) * 10);
  }
}

TEST(Loader, BlocksAreReadInLongRunsOnceAnEpoch) {
  CountingSource::Counts counts;
  const auto loader = make(counts, 10000,
                           {.batch = 50,
                            .shuffle = Shuffle::kBlocks,
                            .blocks = {.block = 100, .window = 5},
                            .memory = 100000,
                            .prefetch = 0});
  for (std::int64_t step = 0; step < loader->steps(); ++step) loader->batch(0, step);
  EXPECT_LE(counts.rows, 10000 + 500);  // the epoch and the first window of the next one
  // One call per block, and one more wherever a step's share of the next window ends.
  EXPECT_LE(counts.calls, 100 + 200 + 10);
}

TEST(Loader, StopsAtOnceWhileBatchesWait) {
  CountingSource::Counts counts;
  for (int i = 0; i < 200; ++i) {
    const auto loader = make(counts, 1000, {.batch = 10, .memory = 2000});
    if (i % 2 == 0) loader->batch(0, i % 100);
  }
}

TEST(Loader, ReadsInItsConstructorWhatFits) {
  CountingSource::Counts counts;
  counts.broken = 7;
  EXPECT_EQ(message_of([&] { make(counts, 10, {}); }), "row 7 is broken");
}

TEST(Loader, RefusesOptionsThatMakeNoSense) {
  CountingSource::Counts counts;
  const auto refusal = [&](std::int64_t rows, const LoaderOptions& options) {
    return message_of<ValueError>([&] { make(counts, rows, options); });
  };
  EXPECT_CONTAINS(refusal(10, {.batch = 0}), "batch 0");
  EXPECT_CONTAINS(refusal(10, {.rank = 2, .ranks = 2}), "rank 2 of 2");
  EXPECT_CONTAINS(refusal(10, {.rank = 6, .ranks = 8, .shares = 3}), "rank 6 of 8 with 3 shares");
  EXPECT_CONTAINS(refusal(10, {.shares = 0}), "0 shares");
  EXPECT_CONTAINS(refusal(10, {.rows = 11}), "the first 11 rows are requested, but the data set has 10");
  EXPECT_CONTAINS(refusal(0, {}), "no rows");
  EXPECT_CONTAINS(refusal(10, {.prefetch = -1}), "prefetch -1");
  EXPECT_CONTAINS(refusal(1000, {.batch = 100, .memory = 6399}),
                  "2 prefetched batches of 100 rows of 16 bytes need 6400 bytes, but 6399 are allowed");
  EXPECT_CONTAINS(refusal(1000, {.batch = 10, .shuffle = Shuffle::kBlocks, .memory = 10000}), "use a smaller window");
}

}  // namespace
}  // namespace syncline::io
