// A node's control block: what its ranks read about each other.
#include "comm/shared/node_control.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "comm/local/local_communicator.h"
#include "syncline/distributed/ending.h"

namespace syncline::comm {
namespace {

using namespace std::chrono_literals;

// Memory as between ranks that are processes: a forked child shares its parent's.
class MappedWindow : public Window {
 public:
  explicit MappedWindow(std::size_t bytes_a_rank, std::size_t ranks = 1) : bytes_(ranks * in_pages(bytes_a_rank)) {
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    for (std::size_t r = 0; r < ranks; ++r)
      parts_.push_back(static_cast<std::byte*>(memory) + r * in_pages(bytes_a_rank));
  }
  ~MappedWindow() override { ::munmap(parts_[0], bytes_); }

 private:
  const std::size_t bytes_;
};

TEST(NodeControl, ChildThatExitsIsNotTheRank) {
  constexpr std::size_t kHalf = 4096;
  const Topology topology = make_topology(0, std::vector<int>{0});
  const NodeControl control(std::make_unique<MappedWindow>(NodeControl::bytes_a_rank(kHalf)), topology, kHalf);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    control.leave(Left::kClosed);
    std::exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(control.own().left.load(), Left::kNo);
}

// The rank of another container may have this process's number, or that of any process here.
TEST(NodeControl, ProcessesOfOtherNamespacesAreNotLookedUp) {
  const ProcessName self = this_process();
  ASSERT_NE(self.start, 0u);
  ASSERT_NE(self.space, 0u);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const auto id = static_cast<std::uint64_t>(child);
  EXPECT_EQ(process_state({id, 0, self.space}, self), ProcessState::kGone);
  EXPECT_EQ(process_state({id, 0, self.space + 1}, self), ProcessState::kRuns);
}

TEST(NodeControl, ProcessWithTheNumberOfADeadOneIsNotTheRank) {
  const ProcessName self = this_process(), observer{.space = self.space};
  EXPECT_EQ(process_state(self, observer), ProcessState::kRuns);
  EXPECT_EQ(process_state({self.id, self.start - 1, self.space}, observer), ProcessState::kGone);
}

// Rank 0 waits for the others, of which rank 1 has been killed, and those above compute.
void expect_a_dead_rank_is_noticed(int ranks) {
  constexpr std::size_t kHalf = 4096;
  const std::vector<int> nodes(static_cast<std::size_t>(ranks));
  const Topology topology = make_topology(0, nodes);
  NodeControl control(std::make_unique<MappedWindow>(NodeControl::bytes_a_rank(kHalf), nodes.size()), topology, kHalf);
  std::vector<pid_t> children;
  for (int r = 1; r < ranks; ++r) {
    children.push_back(::fork());
    ASSERT_GE(children.back(), 0);
    if (children.back() > 0) continue;
    const ProcessName child = this_process();
    control.of(r).process_start = child.start;
    control.of(r).process_space = child.space;
    control.of(r).process_id = child.id;
    for (;;) ::pause();
  }
  for (int r = 1; r < ranks; ++r)
    while (control.of(r).process_id == 0) std::this_thread::sleep_for(1ms);
  control.look_around();
  control.own().arrived = 1;
  ::kill(children[0], SIGKILL);
  EXPECT_EQ(::waitpid(children[0], nullptr, 0), children[0]);
  const Collective barrier = make_all_reduce({}, nullptr, 0, DType::kInt32, Reduce::kMax);
  std::string text;
  try {
    for (int polls = 0; polls < 10'000; ++polls) control.all(&RankControl::arrived, 1, barrier);
  } catch (const RankGone& error) {
    text = error.what();
  }
  EXPECT_NE(text.find("but rank 1 has died: its process is gone"), text.npos) << ranks << " ranks: " << text;
  for (std::size_t i = 1; i < children.size(); ++i) {
    ::kill(children[i], SIGKILL);
    ::waitpid(children[i], nullptr, 0);
  }
}

TEST(NodeControl, ADeadRankIsNoticedHoweverManyAreMissing) {
  for (const int ranks : {2, 3, 4, 5, 9}) expect_a_dead_rank_is_noticed(ranks);
}

TEST(NodeControl, FirstReasonToLeaveStays) {
  constexpr std::size_t kHalf = 4096;
  const Topology topology = make_topology(0, std::vector<int>{0});
  const NodeControl control(make_private_window(NodeControl::bytes_a_rank(kHalf)), topology, kHalf);
  control.leave(Left::kGaveUp);
  control.leave(Left::kClosed);
  EXPECT_EQ(control.own().left.load(), Left::kGaveUp);
}

// A rank that gave up a collective and then closed takes no part in it, although its data has arrived.
TEST(NodeControl, WhoGaveUpAndClosedTakesNoPart) {
  const auto wires = make_local_wires(2);
  std::int32_t values[2] = {1, 2};
  std::vector<Collective> collectives;
  for (std::int32_t& value : values) collectives.push_back(make_all_reduce({}, &value, 1, DType::kInt32, Reduce::kSum));
  wires[0]->begin(collectives[0]);
  wires[0]->cancel();
  wires[0]->close(false);
  wires[1]->begin(collectives[1]);
  EXPECT_THROW(wires[1]->poll(collectives[1]), StallError);
  wires[1]->close(false);
}

// A fast rank begins the next collective before the others have read which rank came last to this one.
TEST(NodeControl, LastArrivalIsThatOfTheRound) {
  const auto wires = make_local_wires(2);
  std::int32_t values[2] = {1, 2};
  std::vector<Collective> collectives;
  for (std::int32_t& value : values) collectives.push_back(make_all_reduce({}, &value, 1, DType::kInt32, Reduce::kSum));
  wires[0]->begin(collectives[0]);
  std::this_thread::sleep_for(1ms);
  wires[1]->begin(collectives[1]);
  ASSERT_EQ(wires[0]->poll(collectives[0]), Wire::Progress::kDone);
  std::this_thread::sleep_for(1ms);
  wires[0]->begin(collectives[0]);
  ASSERT_EQ(wires[1]->poll(collectives[1]), Wire::Progress::kDone);
  EXPECT_EQ(wires[0]->last_arrival()->rank, 1);
  EXPECT_EQ(wires[1]->last_arrival()->rank, 1);
  EXPECT_EQ(wires[1]->last_arrival()->time, wires[0]->last_arrival()->time);
  for (const auto& wire : wires) wire->close(false);
}

}  // namespace
}  // namespace syncline::comm
