#include "comm/local/local_communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "comm/shared/node.h"
#include "comm/single.h"
#include "tests/comm/collective_checks.h"

namespace syncline::comm {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const CommError& error) {
    return error.what();
  }
  return "no CommError";
}

// The parameter is the number of each rank's node.
class LocalRanks : public testing::TestWithParam<std::vector<int>> {
 protected:
  static void spawn(const std::function<void(Communicator&)>& body) {
    spawn_ranks(static_cast<int>(GetParam().size()), body, {.node_of_rank = GetParam()});
  }
};
INSTANTIATE_TEST_SUITE_P(Nodes, LocalRanks,
                         testing::Values(std::vector{0}, std::vector{0, 0}, std::vector{0, 0, 0},
                                         std::vector{0, 0, 0, 0}, std::vector{0, 1}, std::vector{0, 1, 0, 1},
                                         std::vector{0, 0, 1}, std::vector{0, 1, 2}),
                         [](const auto& info) {
                           std::string name = "On";
                           for (const int node : info.param) name += std::to_string(node);
                           return name;
                         });

TEST_P(LocalRanks, AllReduceAllDTypes) {
  spawn([](Communicator& c) { check_all_reduce(c, {0, 1, 5, 4099}); });
}
TEST_P(LocalRanks, AllReduceLargeOddCount) {
  spawn([](Communicator& c) {
    std::vector<float> data(1000003, static_cast<float>(c.rank() + 1));
    c.wait(c.all_reduce({}, data.data(), 1000003, DType::kFloat32, Reduce::kSum));
    const float expected = static_cast<float>(c.size() * (c.size() + 1)) / 2;
    for (const float value : data) ASSERT_EQ(value, expected);
  });
}
TEST_P(LocalRanks, EqualBits) { spawn(check_equal_bits); }
TEST_P(LocalRanks, AllGather) { spawn(check_all_gather); }
TEST_P(LocalRanks, Broadcast) { spawn(check_broadcast); }
TEST_P(LocalRanks, ManyTickets) { spawn(check_many_tickets); }
TEST_P(LocalRanks, Notes) { spawn(check_notes); }
TEST_P(LocalRanks, EndOfProgram) { spawn(check_end_of_program); }
TEST_P(LocalRanks, DoneWithoutWait) { spawn(check_done); }
TEST_P(LocalRanks, Barrier) {
  std::atomic<int> before = 0;
  spawn([&](Communicator& c) {
    ++before;
    c.barrier();
    EXPECT_EQ(before, c.size());
  });
}

TEST_P(LocalRanks, MismatchIsToldOnEveryRank) {
  if (GetParam().size() == 1) return;
  for (const Mismatch& mismatch : mismatches()) {
    SCOPED_TRACE(mismatch.name);
    std::atomic<std::size_t> told = 0;
    spawn([&](Communicator& c) {
      check_mismatch(c, mismatch);
      ++told;
    });
    EXPECT_EQ(told, GetParam().size());
  }
}

TEST(LocalCommunicator, SumsInRankOrder) {
  spawn_ranks(3, [](Communicator& c) {
    const float terms[] = {1e8f, -1e8f, 1.f};  // (1e8 - 1e8) + 1 = 1; another order gives 0
    float data = terms[c.rank()];
    c.wait(c.all_reduce({}, &data, 1, DType::kFloat32, Reduce::kSum));
    EXPECT_EQ(data, 1.f);
  });
}

TEST(LocalCommunicator, SlowRankIsWaitedFor) {
  for (const std::int64_t count : {1, 200000}) {
    spawn_ranks(3, [count](Communicator& c) {
      std::vector<double> first(count, 1.0), second(count, 2.0);
      if (c.rank() == 1) std::this_thread::sleep_for(150ms);
      const Ticket a = c.all_reduce(Tag{1, 1, 0}, first.data(), count, DType::kFloat64, Reduce::kSum);
      const Ticket b = c.all_reduce(Tag{1, 1, 1}, second.data(), count, DType::kFloat64, Reduce::kSum);
      if (c.rank() == 2) std::this_thread::sleep_for(150ms);
      c.wait(b);
      EXPECT_TRUE(c.done(a));
      EXPECT_EQ(first.back(), 3.0);
      EXPECT_EQ(second.front(), 6.0);
    });
  }
}

TEST(LocalCommunicator, MovesLargeDataInTheBackground) {
  spawn_ranks(2, [](Communicator& c) {
    std::vector<float> data(1 << 20, 1.f);
    const Ticket ticket = c.all_reduce({}, data.data(), 1 << 20, DType::kFloat32, Reduce::kSum);
    const auto limit = Clock::now() + 10s;
    std::this_thread::sleep_for(300ms);
    while (!c.done(ticket) && Clock::now() < limit) std::this_thread::yield();
    EXPECT_EQ(data[77], 2.f);
  });
}

TEST(LocalCommunicator, LimitNamesTheMissingRanks) {
  std::atomic<int> over = 0;
  const auto begin = Clock::now();
  const std::string text = error_of([&] {
    spawn_ranks(4,
                [&](Communicator& c) {
                  float x = 1;
                  if (c.rank() == 0 || c.rank() == 2) {
                    try {
                      c.wait(c.all_reduce(Tag{0xbeef, 4, 2}, &x, 1, DType::kFloat32, Reduce::kSum));
                    } catch (...) {
                      ++over;
                      throw;
                    }
                  }
                  while (over < 2) std::this_thread::sleep_for(1ms);
                },
                {.limit = 300ms});
  });
  EXPECT_LT(Clock::now() - begin, 5s);
  EXPECT_NE(text.find("has waited 0.3"), text.npos) << text;
  EXPECT_NE(text.find("all_reduce of plan beef step 4 bucket 2, sum of float32 x 1"), text.npos) << text;
  EXPECT_NE(text.find("rank 1 (running), rank 3 (running) have not called it"), text.npos) << text;
}

// A rank whose program has ended waits for the ranks that still run, beyond the limit.
TEST(LocalCommunicator, TheEndOfAProgramIsWaitedForAsLongAsRanksRun) {
  spawn_ranks(2,
              [](Communicator& c) {
                if (c.rank() == 1) std::this_thread::sleep_for(1s);
                c.barrier({.plan = kEndOfProgram});
              },
              {.limit = 200ms, .stall_limit = 100ms});
}

// A rank that gave up frees its buffers, so other ranks must not touch them.
TEST(LocalCommunicator, LateRankLeavesAloneWhoGaveUp) {
  for (const std::int64_t count : {3, 200000}) {
    std::atomic<int> gave_up = 0;
    std::atomic<bool> told = false;
    spawn_ranks(3,
                [&](Communicator& c) {
                  std::vector<float> data(count, 1.f);
                  while (c.rank() == 2 && gave_up < 2) std::this_thread::sleep_for(1ms);
                  const std::string text =
                      error_of([&] { c.wait(c.all_reduce({}, data.data(), count, DType::kFloat32, Reduce::kSum)); });
                  const std::string wanted = c.rank() == 2 ? "has left the job" : "rank 2 (running) has not called it";
                  EXPECT_NE(text.find(wanted), text.npos) << text;
                  if (c.rank() == 2) told = true;
                  else ++gave_up;
                  while (!told) std::this_thread::sleep_for(1ms);
                  EXPECT_EQ(data.back(), 1.f);
                },
                {.limit = 100ms});
  }
}

TEST(LocalCommunicator, RankThatLeftIsTold) {
  std::atomic<int> told = 0;
  EXPECT_THROW(spawn_ranks(3,
                           [&](Communicator& c) {
                             if (c.rank() == 1) throw std::runtime_error("out of luck");
                             float x = 1;
                             const std::string text =
                                 error_of([&] { c.wait(c.all_reduce({}, &x, 1, DType::kFloat32, Reduce::kSum)); });
                             EXPECT_NE(text.find("rank 1 has left the job"), text.npos) << text;
                             ++told;
                           }),
               std::runtime_error);
  EXPECT_EQ(told, 2);
}

TEST(LocalCommunicator, DropsWhatIsNotWaitedFor) {
  spawn_ranks(2, [](Communicator& c) {
    static float x[2] = {1, 1};
    if (c.rank() == 0) c.all_reduce({}, &x[0], 1, DType::kFloat32, Reduce::kSum);
  });
}

// A rank may make several groups before another rank makes the first.
TEST(LocalCommunicator, GroupsOfTheSameRanksAreTwo) {
  const auto ranks = make_local_communicators(2, {.limit = 5s});
  std::vector<std::vector<std::unique_ptr<Communicator>>> groups(2);
  for (std::size_t r = 0; r < 2; ++r)
    for (int i = 0; i < 2; ++i) groups[r].push_back(ranks[r]->group(std::vector<int>{0, 1}));
  std::int32_t sums[2][2] = {{1, 10}, {2, 20}};
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      EXPECT_EQ(error_of([&] {
                  for (const std::size_t i : {0, 1})
                    groups[r][i]->wait(groups[r][i]->all_reduce({}, &sums[r][i], 1, DType::kInt32, Reduce::kSum));
                }),
                "no CommError");
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& sum : sums) {
    EXPECT_EQ(sum[0], 3);
    EXPECT_EQ(sum[1], 30);
  }
}

TEST(LocalCommunicator, RefusesNoRanks) { EXPECT_THROW(make_local_communicators(0), ValueError); }

// This rank does the work that is left to a single rank.
TEST(LocalCommunicator, TheLowestLivingRankIsTheFirstThatHasNotLeft) {
  auto ranks = make_local_communicators(3);
  for (const auto& rank : ranks) EXPECT_EQ(rank->lowest_living(), rank->rank() == 0);
  ranks[0].reset();
  EXPECT_TRUE(ranks[1]->lowest_living());
  EXPECT_FALSE(ranks[2]->lowest_living());
  ranks[1].reset();
  EXPECT_TRUE(ranks[2]->lowest_living());
}

// As under --map-by node: ranks are numbered by node, so that 0, 1 and 2 are on node 0.
TEST(LowestLiving, IsTheFirstThatIsLeftOfRankZerosNode) {
  auto ranks = make_local_communicators(6, {.node_of_rank = {0, 1, 0, 1, 0, 1}});
  const auto lowest = [&] {
    std::vector<int> found;
    for (const auto& rank : ranks)
      if (rank && rank->lowest_living()) found.push_back(rank->rank());
    return found;
  };
  EXPECT_EQ(lowest(), std::vector{0});
  ranks[4].reset();
  EXPECT_EQ(lowest(), std::vector{0});
  ranks[0].reset();
  EXPECT_EQ(lowest(), std::vector{1});
  ranks[1].reset();
  EXPECT_EQ(lowest(), std::vector{2});
}

// A rank changes its floating-point modes while its communicator's thread already runs. Whichever thread computes the
// sum uses these modes.
TEST(Modes, AreTheCallersWhoeverTakesTheSum) {
  spawn_ranks(2, [](Communicator& c) {
    const int before = std::fegetround();
    std::fesetround(FE_UPWARD);
    for (const std::int64_t count : {1, 300000})
      for (const bool waits : {false, true}) {
        std::vector<float> data(static_cast<std::size_t>(count), c.rank() == 0 ? 1.f : 0x1p-30f);
        const Ticket ticket = c.all_reduce({}, data.data(), count, DType::kFloat32, Reduce::kSum);
        while (!waits && !c.done(ticket)) std::this_thread::yield();  // the communicator's thread sums
        c.wait(ticket);
        EXPECT_EQ(data.front(), 1.f + 0x1p-23f) << count << (waits ? " waited for" : " asked for");
        EXPECT_EQ(data.back(), 1.f + 0x1p-23f) << count << (waits ? " waited for" : " asked for");
      }
    std::fesetround(before);
  });
}

TEST(Layout, NamesWhatDecidesTheBitsOfSums) {
  const auto layout = [](const std::vector<int>& nodes, WireFormat format = WireFormat::kSame) {
    std::string text;
    spawn_ranks(static_cast<int>(nodes.size()),
                [&](Communicator& c) {
                  if (c.rank() == 0) text = c.layout();
                },
                {.node_of_rank = nodes, .format = format});
    return text;
  };
  EXPECT_EQ(layout({0}), "ranks 0");
  EXPECT_EQ(layout({0, 0, 0}), "ranks 0-2");
  EXPECT_EQ(layout({0, 0, 1, 1}), "ranks 0-3 in pairs");
  EXPECT_EQ(layout({0, 0, 0, 0}), "ranks 0-3 in pairs");
  EXPECT_EQ(layout({0, 1}, WireFormat::kBfloat16), "ranks 0-1, bfloat16 between nodes: ranks 0 | 1");
  EXPECT_EQ(layout({0, 1, 0}, WireFormat::kFloat16), "ranks 0-2, float16 between nodes: ranks 0-1 | 2");
  EXPECT_EQ(layout({0, 0}, WireFormat::kFloat16), "ranks 0-1");
  EXPECT_EQ(make_single_communicator()->layout(), "ranks 0");
  std::vector<int> alone(500), other(500);
  for (int r = 0; r < 500; ++r) alone[r] = other[r] = r;
  other[499] = 498;
  const std::string a = make_topology(0, alone).describe(), b = make_topology(0, other).describe();
  EXPECT_NE(a, b);
  EXPECT_LT(a.size(), 400u);
}

}  // namespace
}  // namespace syncline::comm
