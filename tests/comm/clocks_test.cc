// The offsets between clocks, and the statistics of the waiting times between ranks.
#include "comm/worker/clocks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "comm/local/local_communicator.h"
#include "comm/worker/wait_stats.h"
#include "syncline/timeline.h"
#include "tests/io/scratch.h"

namespace syncline::comm {
namespace {

using namespace std::chrono_literals;

TEST(Clocks, AreFoundWithinTheStatedError) {
  const std::vector<std::int64_t> ahead{0, 7'000'000'000'000'123, -42, -3'000'000'000};
  std::vector<ClockOffset> found(ahead.size());
  spawn_ranks(4, [&](Communicator& communicator) {
    const auto r = static_cast<std::size_t>(communicator.rank());
    found[r] = measure_clock(communicator, [&] { return timeline::now() + ahead[r]; });
  });
  EXPECT_EQ(found[0].offset, 0);
  EXPECT_EQ(found[0].error, 0);
  for (std::size_t r = 1; r < ahead.size(); ++r) {
    EXPECT_GT(found[r].error, 0);
    EXPECT_LE(std::abs(found[r].offset + ahead[r]), found[r].error) << "rank " << r;
    EXPECT_NEAR(static_cast<double>(found[r].at - ahead[r]), static_cast<double>(found[0].at), 1e10);
  }
}

class WaitStatsTest : public ::testing::Test {
 protected:
  WaitStatsTest() { timeline::start(scratch_.path("trace"), 0, 2); }
  ~WaitStatsTest() override { timeline::stop(); }

  // One collective: this rank arrives, computes for `compute` and then waits (not for kNeverWaitedFor). Rank 1 arrives
  // `late` afterwards, and the data moves for `transfer`. `knows`: the wire knows that rank 1 came last.
  void collective(std::uint32_t bucket, std::chrono::milliseconds compute, std::chrono::milliseconds late,
                  std::chrono::milliseconds transfer, bool knows = true) {
    Collective collective;
    collective.header.bucket = bucket;
    stats_.arrive();
    std::this_thread::sleep_for(compute);
    const auto move = [&] {
      std::this_thread::sleep_for(late);
      stats_.agree();
      const Arrival last{1, timeline::now()};
      std::this_thread::sleep_for(transfer);
      stats_.finish(collective, knows ? std::optional(last) : std::nullopt);
    };
    if (bucket == kNeverWaitedFor) return move();
    const WaitStats::Wait wait(stats_, collective);
    move();
  }

  static constexpr std::uint32_t kNeverWaitedFor = 9;
  io::Scratch scratch_;
  WaitStats stats_;
};

constexpr std::int64_t ms = 1'000'000;

TEST_F(WaitStatsTest, TellLatenessFromTransfer) {
  collective(3, 5ms, 20ms, 10ms);
  collective(3, 5ms, 20ms, 10ms);
  collective(4, 0ms, 8ms, 1ms);
  const WaitStats::Totals& totals = stats_.totals();
  EXPECT_GE(totals.for_others, 48 * ms);
  EXPECT_GE(totals.transfers, 21 * ms);
  EXPECT_EQ(totals.hidden, 0);
  EXPECT_GE(totals.waited, totals.for_others + totals.transfers);
  EXPECT_EQ(totals.late[0].rank, 1);
  EXPECT_EQ(totals.late[0].bucket, 3);
  EXPECT_GE(totals.late[0].time, 40 * ms);
  EXPECT_EQ(totals.late[1].bucket, 4);
  EXPECT_EQ(totals.late[0].time + totals.late[1].time, totals.for_others);
}

TEST_F(WaitStatsTest, WhatNobodyWaitsForIsHidden) {
  collective(kNeverWaitedFor, 2ms, 5ms, 10ms);
  const WaitStats::Totals& totals = stats_.totals();
  EXPECT_GE(totals.transfers, 10 * ms);
  EXPECT_EQ(totals.hidden, totals.transfers);
  EXPECT_EQ(totals.for_others, 0);
  EXPECT_EQ(totals.waited, 0);
  EXPECT_EQ(totals.late[0].time, 0);
}

TEST_F(WaitStatsTest, NobodyIsBlamedWithoutKnowing) {
  collective(3, 0ms, 5ms, 0ms, /*knows=*/false);
  EXPECT_GE(stats_.totals().for_others, 5 * ms);
  EXPECT_EQ(stats_.totals().late[0].time, 0);
}

// Each communicator has a worker with its own WaitStats; all record into one file.
TEST(AccountsOfThreads, HaveRowsOfTheirOwn) {
  const io::Scratch scratch;
  timeline::start(scratch.path("trace"), 0, 3);
  spawn_ranks(3, [](Communicator& communicator) {
    std::vector<float> small(10), large(100'000);
    for (std::uint32_t i = 0; i < 10; ++i) {
      const auto sum = [&](std::vector<float>& data) {
        const Tag tag{.step = i, .names = remember_names("a test")};
        return communicator.all_reduce(tag, data.data(), static_cast<std::int64_t>(data.size()), DType::kFloat32,
                                       Reduce::kSum);
      };
      const Ticket first = sum(small), second = sum(large);
      communicator.wait(first);
      communicator.wait(second);
    }
  });
  timeline::stop();
  std::map<int, int> transfers;
  for (const auto& event : nlohmann::json::parse(io::read_file(scratch.path("trace/rank0.json"))))
    if (event.value("cat", "") == "transfer") {
      ++transfers[event["tid"].get<int>()];
      EXPECT_EQ(event["args"]["what"], "a test");
    }
  EXPECT_EQ(transfers.size(), 3u);
  for (const auto& [row, count] : transfers) EXPECT_EQ(count, 20) << "row " << row;
}

TEST(WaitStatsWithoutTimeline, CountNothing) {
  WaitStats stats;
  stats.arrive();
  stats.agree();
  stats.finish({}, Arrival{1, timeline::now()});
  EXPECT_EQ(stats.totals().transfers, 0);
}

}  // namespace
}  // namespace syncline::comm
