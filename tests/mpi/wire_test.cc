// The checks of tests/comm over Open MPI; run as `mpirun -np N wire_test [messages]`. Each test makes its own
// communicators; with `messages`, they share no memory.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/mpi/mpi_communicator.h"
#include "syncline/distributed/make_communicator.h"
#include "tests/comm/collective_checks.h"

namespace syncline::comm {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

bool only_messages = false;

std::unique_ptr<Communicator> make(MpiOptions options = {}) {
  options.worker.wait_limit = 20s;
  if (only_messages) options.share_memory = false;
  return make_mpi_communicator(options);
}

TEST(Wire, AllReduceAllDTypes) { check_all_reduce(*make(), {0, 1, 5, 4099, 70001}); }
TEST(Wire, AllReduceLargeOddCount) { check_all_reduce(*make(), {1000003}); }
TEST(Wire, EqualBits) { check_equal_bits(*make()); }
TEST(Wire, OrderOfSums) { check_order_of_sums(*make()); }
TEST(Wire, AllGather) { check_all_gather(*make()); }
TEST(Wire, Broadcast) { check_broadcast(*make()); }
TEST(Wire, ManyTickets) { check_many_tickets(*make()); }
TEST(Wire, NodeMemory) {
  for (int i = 0; i < 3; ++i) check_node_memory(make());
}
TEST(Wire, GatherOnNodes) { check_gather_on_nodes(*make()); }
TEST(Wire, Notes) {
  check_notes(*make());
  check_notes(*make());
}
TEST(Wire, EndOfProgram) { check_end_of_program(*make()); }
TEST(Wire, DoneWithoutWait) { check_done(*make()); }

TEST(Wire, OddPiecesAndGatherRankByRank) {
  const auto comm = make({.share_memory = false});
  check_all_reduce(*comm, {100003});
  check_all_gather(*comm);
  check_broadcast(*comm);
}

TEST(Wire, WithoutBackground) {
  const auto comm = make_mpi_communicator({.worker = {.wait_limit = 20s, .background = false}});
  check_all_reduce(*comm, {1, 100003});
  check_many_tickets(*comm);
  check_done(*comm);
}

TEST(Wire, SlowRankIsWaitedFor) {
  const auto comm = make();
  for (const std::int64_t count : {1, 500000}) {
    std::vector<double> data(count, 1.0);
    if (comm->rank() == comm->size() - 1) std::this_thread::sleep_for(200ms);
    const Ticket ticket = comm->all_reduce({}, data.data(), count, DType::kFloat64, Reduce::kSum);
    if (comm->rank() == 0) std::this_thread::sleep_for(100ms);
    comm->wait(ticket);
    EXPECT_EQ(data.front(), comm->size());
    EXPECT_EQ(data.back(), comm->size());
  }
}

TEST(Wire, MismatchIsToldOnEveryRank) {
  for (const Mismatch& mismatch : mismatches()) {
    SCOPED_TRACE(mismatch.name);
    const auto begin = Clock::now();
    check_mismatch(*make(), mismatch);
    EXPECT_LT(Clock::now() - begin, 10s);
  }
}

// Ranks end a group at different times; meanwhile the collectives of another communicator continue.
TEST(Wire, EndOfAGroupHoldsNobodyUp) {
  for (const int first : {0, 1}) {
    const auto world = make({.share_memory = false});
    std::vector<int> all(static_cast<std::size_t>(world->size()));
    std::iota(all.begin(), all.end(), 0);
    auto group = world->group(all);
    std::vector<float> data(8'000'000, 1.f);
    const Ticket ticket = world->all_reduce({}, data.data(), std::ssize(data), DType::kFloat32, Reduce::kSum);
    if (world->rank() == first) group.reset();
    world->wait(ticket);
    EXPECT_EQ(data.back(), static_cast<float>(world->size()));
  }
}

TEST(Wire, AGroupsErrorNamesItsRanksInTheJob) {
  const auto world = make({});
  const int last = world->size() - 1;
  if (world->rank() < last - 1) return;
  const auto pair = world->group(std::vector<int>{last - 1, last});
  std::vector<double> data(static_cast<std::size_t>(last) + 1);
  const std::string text = message_of<DisagreementError>(
      [&] { pair->wait(pair->all_reduce({}, data.data(), world->rank() + 1, DType::kFloat64, Reduce::kSum)); });
  EXPECT_NE(text.find(join_text(" x ", last, " on rank ", last - 1, ", but")), text.npos) << text;
  EXPECT_NE(text.find(join_text(" x ", last + 1, " on rank ", last, ";")), text.npos) << text;
}

// Open MPI makes a group with messages of its own on the same communicator.
TEST(Wire, AGroupTakesNoNote) {
  const auto world = make({.share_memory = false});
  std::vector<int> all(static_cast<std::size_t>(world->size()));
  std::iota(all.begin(), all.end(), 0);
  world->post_note(7);
  world->barrier({});
  world->group(all)->barrier({});
  if (world->rank() == 0) return;
  EXPECT_EQ(world->take_note(), std::optional<std::uint64_t>(7));
}

// Two buffers a rank with more bytes than an int can count. Run by hand with --gtest_also_run_disabled_tests; 2 ranks
// need 9 GB.
TEST(Wire, DISABLED_BeyondIntMax) {
  const auto comm = make();
  const std::int64_t count = (std::int64_t{1} << 31) + 5;
  std::vector<std::uint8_t> data(static_cast<std::size_t>(count), 3);
  comm->wait(comm->all_reduce({}, data.data(), count, DType::kUint8, Reduce::kSum));
  EXPECT_EQ(data.front(), 3 * comm->size());
  EXPECT_EQ(data.back(), 3 * comm->size());
  data.back() = static_cast<std::uint8_t>(comm->rank() + 40);
  comm->wait(comm->broadcast({}, data.data(), count, 1));
  EXPECT_EQ(data.back(), 41);
  std::vector<std::uint8_t> gathered(static_cast<std::size_t>(count + comm->size() - 1));
  std::vector<std::int64_t> counts(comm->size(), 1);
  counts[0] = count;
  data.front() = static_cast<std::uint8_t>(comm->rank() + 50);
  comm->wait(comm->all_gather({}, data.data(), gathered.data(), counts));
  EXPECT_EQ(gathered.front(), 50);
  EXPECT_EQ(gathered[static_cast<std::size_t>(count)], 51);
}

}  // namespace
}  // namespace syncline::comm

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  syncline::comm::only_messages = argc > 1 && std::string_view(argv[1]) == "messages";
  const auto world = syncline::comm::make_communicator({});  // keeps MPI alive between the tests
  if (world->size() < 2) {
    std::fprintf(stderr, "wire_test: run it with mpirun -np 2 or more\n");
    return 2;
  }
  if (world->rank() != 0) GTEST_FLAG_SET(brief, true);
  return RUN_ALL_TESTS();
}
