// What a rank that waits says of the ranks that it waits for.
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <sstream>
#include <thread>

#include "comm/local/local_communicator.h"
#include "syncline/distributed/ending.h"
#include "tests/comm/collective_checks.h"

namespace syncline::comm {
namespace {

using namespace std::chrono_literals;

// Nodes {0, 1} and {2, 3}, driven by this thread.
class TwoNodes {
 public:
  ~TwoNodes() {
    for (const auto& wire : wires_) wire->close(false);
  }
  Wire& operator[](std::size_t r) { return *wires_[r]; }
  void begin(std::size_t r, const Collective& call) {
    calls_[r] = call;
    wires_[r]->begin(calls_[r]);
  }
  // Polls these ranks in turn, so often or until they are done.
  void poll(std::set<std::size_t> ranks, int times = 1 << 20) {
    for (; times > 0 && !ranks.empty(); --times)
      std::erase_if(ranks, [&](std::size_t r) { return wires_[r]->poll(calls_[r]) == Wire::Progress::kDone; });
  }

 private:
  const std::vector<std::unique_ptr<Wire>> wires_ = make_local_wires(4, {0, 0, 1, 1});
  std::vector<Collective> calls_ = std::vector<Collective>(4);
};

// Rank 0 lacks no message, but waits for rank 1, which does: it names the silent node too. Nobody asks rank 1.
TEST(Reports, NameTheSilentNodeThatAnotherRankWaitsFor) {
  constexpr std::int64_t kCount = 1 << 18;
  TwoNodes job;
  for (std::size_t r = 0; r < 4; ++r) job.begin(r, make_memory(Kind::kSharedMemory, sizeof(float) * kCount));
  job.poll({0, 1, 2, 3});
  const auto sum_of_rank = [&](std::size_t r) {
    return make_all_reduce({}, job[r].shared_memory(), kCount, DType::kFloat32, Reduce::kSum);
  };
  for (std::size_t r = 0; r < 4; ++r) job.begin(r, sum_of_rank(r));
  job.poll({0, 1, 2}, 1000);  // rank 3 is stopped, then rank 2
  job[0].ask_around();
  job.poll({0, 1}, 5000);
  EXPECT_EQ(job[0].missing().text.substr(0, 45), "rank 2, rank 3 of other nodes do not answer: ");
  job.poll({0, 1, 2, 3});
  // Nothing is left of it in the next sum.
  for (std::size_t r = 0; r < 4; ++r) job.begin(r, sum_of_rank(r));
  EXPECT_EQ(job[0].missing().text, "all ranks that answer have called it");
}

// Ranks of its own node and of another one report a late rank with its position, and the collective continues.
TEST(Reports, NameALateRankAndTheCollectiveGoesOn) {
  testing::internal::CaptureStderr();
  spawn_ranks(3,
              [](Communicator& c) {
                c.publish({0xabc, 7, "conv2d"});
                c.barrier();
                if (c.rank() == 1) std::this_thread::sleep_for(2500ms);
                std::vector<float> data(30000, 1.f);
                c.wait(c.all_reduce(Tag{0xabc, 7, 2}, data.data(), 30000, DType::kFloat32, Reduce::kSum));
                EXPECT_EQ(data[5], 3.f);
              },
              {.stall_limit = 300ms, .node_of_rank = {0, 0, 1}});
  const std::string text = testing::internal::GetCapturedStderr();
  const std::string named = "rank 1 (running, in step 7 of plan abc at conv2d) has not called it";
  EXPECT_NE(text.find("rank 0 of 3 has waited"), text.npos) << text;
  EXPECT_NE(text.find(named), text.npos) << text;
  EXPECT_NE(text.find("rank 2 of 3 has waited"), text.npos) << text;
  EXPECT_NE(text.rfind(named), text.find(named)) << "the other node names it too: " << text;
}

// Also those of a group of a group.
TEST(Reports, NameRanksOfGroupsByTheirNumbersInTheJob) {
  testing::internal::CaptureStderr();
  spawn_ranks(4,
              [](Communicator& c) {
                if (c.rank() == 0) return;
                const auto group = c.group(std::vector<int>{1, 2, 3});
                std::vector<double> data(4);
                group->barrier();
                if (c.rank() == 3) std::this_thread::sleep_for(2500ms);
                group->wait(group->broadcast({}, data.data(), 8, 1));
                if (c.rank() == 1) return;
                auto ended = c.group(std::vector<int>{2, 3});
                if (c.rank() == 3) ended.reset();
                else
                  EXPECT_NE(message_of<RankGone>([&] { ended->barrier(); }).find(", but rank 3 has left the job"),
                            std::string::npos);
                const auto pair = group->group(std::vector<int>{1, 2});
                const std::string text = message_of<DisagreementError>(
                    [&] { pair->wait(pair->all_reduce({}, data.data(), c.rank(), DType::kFloat64, Reduce::kSum)); });
                EXPECT_NE(text.find("sum of float64 x 2 on rank 2, but "), text.npos) << text;
                EXPECT_NE(text.find("sum of float64 x 3 on rank 3;"), text.npos) << text;
              },
              {.stall_limit = 300ms, .node_of_rank = {0, 0, 1, 1}});
  const std::string text = testing::internal::GetCapturedStderr();
  const std::string named = "8 bytes from rank 2: rank 3 (running) has not called it";
  EXPECT_NE(text.find("rank 1 of 4 has waited"), text.npos) << text;
  EXPECT_NE(text.find("rank 2 of 4 has waited"), text.npos) << text;
  EXPECT_NE(text.find(named), text.npos) << text;
  EXPECT_NE(text.rfind(named), text.find(named)) << "the other node names it too: " << text;
}

TEST(Reports, NameASilentRankOfAGroupByItsNumberInTheJob) {
  testing::internal::CaptureStderr();
  spawn_ranks(3,
              [](Communicator& c) {
                if (c.rank() == 0) return;
                const auto pair = c.group(std::vector<int>{1, 2});
                if (c.rank() == 2) std::this_thread::sleep_for(1s);
                pair->barrier();
              },
              {.stall_limit = 300ms, .node_of_rank = {0, 0, 1}});
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("rank 1 of 3 has waited"), text.npos) << text;
  EXPECT_NE(text.find("rank 2 of another node does not answer"), text.npos) << text;
}

// Nodes meet in rounds, so most of them do not wait for the late node itself. All name it, and it alone.
TEST(Reports, NameOneOfManyNodesOnAllOthers) {
  constexpr int kRanks = 6, kLate = 3;
  testing::internal::CaptureStderr();
  spawn_ranks(kRanks,
              [](Communicator& c) {
                c.barrier();
                if (c.rank() == kLate) std::this_thread::sleep_for(3500ms);
                c.barrier();
              },
              {.stall_limit = 1s, .node_of_rank = {0, 1, 2, 3, 4, 5}});
  std::istringstream text(testing::internal::GetCapturedStderr());
  std::set<std::string> reporters;
  for (std::string line; std::getline(text, line);) {
    reporters.insert(line.substr(0, line.find(" of 6 has waited")));
    EXPECT_NE(line.find(": rank 3 of another node does not answer"), line.npos) << line;
  }
  EXPECT_EQ(reporters, (std::set<std::string>{"syncline: rank 0", "syncline: rank 1", "syncline: rank 2",
                                              "syncline: rank 4", "syncline: rank 5"}));
}

// All ranks have come, but one of them does not transfer.
TEST(Reports, NameARankThatStopsDuringATransfer) {
  constexpr std::int64_t kCount = 1 << 20;
  const auto wires = make_local_wires(2);
  std::vector<std::vector<float>> data(2, std::vector<float>(kCount, 1.f));
  std::vector<Collective> collectives;
  for (auto& own : data)
    collectives.push_back(make_all_reduce(Tag{0xabc, 7, 2}, own.data(), kCount, DType::kFloat32, Reduce::kSum));
  for (std::size_t r = 0; r < 2; ++r) wires[r]->begin(collectives[r]);
  EXPECT_EQ(wires[0]->missing().text, "all ranks that answer have called it");
  wires[1]->publish({0xabc, 7, "conv2d"});
  const auto finish = [&](std::size_t r) {
    while (wires[r]->poll(collectives[r]) != Wire::Progress::kDone) std::this_thread::yield();
  };
  std::thread first(finish, 0);
  const std::string wanted = "rank 1 (running, in step 7 of plan abc at conv2d) does not continue it";
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (wires[0]->missing().text != wanted && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(wires[0]->missing().text, wanted);
  finish(1);
  first.join();
  EXPECT_EQ(data[0].back(), 2.f);
  EXPECT_EQ(data[0], data[1]);
  for (const auto& wire : wires) wire->close(true);
}

}  // namespace
}  // namespace syncline::comm
