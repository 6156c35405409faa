// comm/nccl over the stand-in, with ranks as threads: the results, and the choice of NCCL or another wire.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>

#include "comm/nccl/nccl_choice.h"
#include "tests/comm/collective_checks.h"
#include "tests/comm/nccl_ranks.h"
#include "tests/comm/nccl_stand_in/stand_in.h"

namespace syncline::comm {
namespace {

using namespace std::chrono_literals;
using stand_in::Behaviour;
using stand_in::calls_of;

constexpr std::int64_t kCount = 30011;  // of float32: six pieces

class Nccl : public testing::Test {
 protected:
  void SetUp() override { stand_in::start_over({}); }
  void TearDown() override {
    EXPECT_EQ(stand_in::violations(), std::vector<std::string>{});
    EXPECT_EQ(stand_in::alive(), std::vector<std::string>{});
  }

  // All ranks must end without an error.
  static void run(int size, const std::function<void(Communicator&)>& body) {
    for (const RankEnd& end : run_nccl_ranks(size, stand_in_options(), body)) {
      EXPECT_EQ(end.error, "");
      EXPECT_EQ(end.told, "large all-reduces use NCCL 2.28.9, one GPU per rank\n");
    }
  }
};

class NcclRanks : public Nccl, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, NcclRanks, testing::Values(1, 2, 3));

TEST_P(NcclRanks, AllReduce) {
  run(GetParam(), [](Communicator& c) { check_all_reduce(c, {0, 1, 5, 4099, 70001}); });
  // Dtypes of 1, 4 and 8 bytes; only sums of the floating ones, whose extremes would lose NaN.
  EXPECT_EQ(calls_of("ncclAllReduce"), ((2 * 3 + 12 + 24) * 3 + 12 + 24) * GetParam());
}
TEST_P(NcclRanks, CallsThatAreInProgress) {
  stand_in::start_over({.in_progress = 3});
  run(GetParam(), [](Communicator& c) { check_all_reduce(c, {30011}); });
}
TEST_P(NcclRanks, SumsInSharedMemoryThatIsPinned) {
  run(GetParam(), [](Communicator& c) {
    for (const std::int64_t count : {kCount, 2 * kCount, kCount}) check_shared_sum(c, count);
  });
  if (GetParam() == 1) return;  // its shared memory is the device's own
  EXPECT_EQ(calls_of("cudaHostRegister"), GetParam() * 3);
  EXPECT_EQ(calls_of("cudaHostUnregister"), GetParam() * 3);
  EXPECT_EQ(calls_of(stand_in::kCopyOfRegistered), GetParam() * 2 * (6 + 11 + 6));  // to and from the GPU, by pieces
}
TEST_P(NcclRanks, EqualBits) { run(GetParam(), check_equal_bits); }
TEST_P(NcclRanks, DoneWithoutWait) { run(GetParam(), check_done); }

TEST_F(Nccl, AllGather) { run(2, check_all_gather); }
TEST_F(Nccl, Broadcast) { run(2, check_broadcast); }
TEST_F(Nccl, ManyTickets) { run(2, check_many_tickets); }
TEST_F(Nccl, Notes) { run(2, check_notes); }
TEST_F(Nccl, EndOfProgram) { run(2, check_end_of_program); }

TEST_F(Nccl, MismatchIsToldOnEveryRank) {
  for (const Mismatch& mismatch : mismatches()) {
    SCOPED_TRACE(mismatch.name);
    run(2, [&](Communicator& c) { check_mismatch(c, mismatch); });
  }
}

TEST_F(Nccl, OtherWireDoesWhatNcclCannot) {
  run(2, [](Communicator& c) {
    check_sum(c, kSmallBytes / 4);
    std::vector<std::int16_t> data(100000, 3);
    c.wait(c.all_reduce({}, data.data(), 100000, DType::kInt16, Reduce::kSum));
    EXPECT_EQ(data.back(), 6);
  });
  EXPECT_EQ(calls_of("ncclAllReduce"), 0);
}

TEST_F(Nccl, SlowRankIsWaitedForBeforeTheDeadlineRuns) {
  NcclOptions options = stand_in_options();
  options.limit = 700ms;
  const auto ends = run_nccl_ranks(2, options, [](Communicator& c) {
    if (c.rank() == 1) std::this_thread::sleep_for(1s);
    check_sum(c, kCount);
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.error, "");
}

TEST_F(Nccl, TakesAGpuARank) {
  run(3, [](Communicator& c) { check_sum(c, kCount); });
  EXPECT_EQ(calls_of("ncclAllReduce"), 3 * 6);
}

// The error comes before the start of NCCL.
void expect_refusal(const Behaviour& behaviour, const NcclOptions& options, const std::string& reason) {
  SCOPED_TRACE(reason);
  stand_in::start_over(behaviour);
  for (const RankEnd& end : run_nccl_ranks(2, options, [](Communicator& c) { check_sum(c, kCount); })) {
    EXPECT_TRUE(end.comm) << end.error;
    EXPECT_NE(end.error.find(reason), std::string::npos) << end.error << end.told;
    EXPECT_EQ(end.told, "");
  }
  EXPECT_EQ(calls_of("ncclCommInitRankConfig"), 0);
}

TEST_F(Nccl, RefusesWhatCannotBe) {
  NcclOptions options = stand_in_options();
  expect_refusal({.one_gpu = true}, options,
                 "ranks 0 and 1 share the GPU 0000:01:00.0 of one node; NCCL 2.28.9 supports one rank per GPU");
  expect_refusal({.devices = 1}, options, "ranks 0 and 1 share the GPU 0000:01:00.0");
  expect_refusal({.version = 23007, .one_gpu = true}, options, "only with NCCL_MULTI_RANK_GPU_ENABLE=1, which rank 0");
  expect_refusal({.devices = 0}, options, "rank 0: NCCL: no GPU is visible to this process");
  expect_refusal({.fail = "cudaGetDeviceCount", .fail_at = 1, .fail_code = 35}, options, "(code 35)");
  options.many_ranks_a_gpu = options.multicast_forced = true;
  expect_refusal({.version = 23007, .one_gpu = true}, options, "NCCL_NVLS_ENABLE=1, which rank 0 sets");
  options.nccl_library = "/nowhere/libnccl.so.2";
  expect_refusal({}, options, "SYNCLINE_NCCL_LIBRARY can name another file");
}

TEST_F(Nccl, RanksShareAGpuWhereNcclAllowsIt) {
  stand_in::start_over({.version = 23007, .one_gpu = true});
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  NcclOptions options = stand_in_options();
  options.many_ranks_a_gpu = true;
  const auto ends = run_nccl_ranks(2, options, [](Communicator& c) { check_sum(c, kCount); });
  for (const RankEnd& end : ends) {
    EXPECT_EQ(end.error, "");
    EXPECT_NE(end.told.find("NCCL 2.30.7; ranks 0 and 1 share the GPU"), std::string::npos) << end.told;
  }
  EXPECT_GT(calls_of("ncclAllReduce"), 0);
  unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
}

NcclAvailability on(std::uint64_t node, char gpu) {
  return {.usable = 1, .version = 22809, .node = node, .gpu = {gpu}};
}

TEST(NcclChoice, EqualAddressesOnTwoNodesAreTwoGpus) {
  EXPECT_EQ(check_nccl(std::array{on(1, 'a'), on(1, 'b'), on(2, 'a'), on(2, 'b')}), "NCCL 2.28.9, one GPU per rank");
  EXPECT_EQ(message_of<CommError>([] {
              check_nccl(std::array{on(1, 'a'), on(1, 'b'), on(2, 'a'), on(2, 'a')});
            }).find("NCCL: cannot be used: ranks 2 and 3 share the GPU a of one node; "),
            0u);
}

TEST(NcclChoice, RanksMustFitTogether) {
  std::array ranks{on(1, 'a'), on(1, 'b')};
  ranks[1].version = 23007;
  EXPECT_EQ(message_of<CommError>([&] { check_nccl(ranks); }),
            "NCCL: cannot be used: rank 0 has NCCL 2.28.9, rank 1 has NCCL 2.30.7; install one version on all nodes; "
            "start as many ranks as there are GPUs, or set SYNCLINE_TRANSPORT=auto");
  ranks[1].settings = 7;
  EXPECT_THROW(check_nccl(ranks), DisagreementError);
}

TEST(NcclChoice, ReadsTheEnvironment) {
  const std::map<std::string, std::string> set{
      {"SYNCLINE_NCCL_LIBRARY", "/opt/nccl.so"}, {"NCCL_MULTI_RANK_GPU_ENABLE", "1"}, {"NCCL_NVLS_ENABLE", "2"}};
  Launch launch;
  launch.local_rank = 3;
  const NcclOptions options = read_nccl_environment(launch, [&](const char* name) {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  });
  EXPECT_EQ(options.local_rank, 3);
  EXPECT_EQ(options.nccl_library, "/opt/nccl.so");
  EXPECT_EQ(options.cudart_library, "");
  EXPECT_TRUE(options.many_ranks_a_gpu);
  EXPECT_FALSE(options.multicast_forced);
}

TEST_F(Nccl, RefusesWrongOptions) {
  for (const auto& change : std::vector<std::function<void(NcclOptions&)>>{
           [](NcclOptions& o) { o.slots = 0; }, [](NcclOptions& o) { o.piece_bytes = 7; },
           [](NcclOptions& o) { o.smallest_bytes = kSmallBytes; }}) {
    NcclOptions options = stand_in_options();
    change(options);
    for (const RankEnd& end : run_nccl_ranks(1, options, [](Communicator&) {}))
      EXPECT_NE(end.error.find("with_nccl: piece_bytes="), std::string::npos) << end.error;
  }
}

// The real libraries, if the machine has them; it need not have a GPU.
TEST(NcclChoice, RealLibrariesHaveOurCalls) {
  NcclLibrary library{};
  try {
    load_cudart(library, "");
    load_nccl(library, "");
  } catch (const CommError& error) {
    GTEST_SKIP() << error.what();
  }
  int version = 0;
  EXPECT_EQ(library.ncclGetVersion(&version), kNcclSuccess);
  EXPECT_GE(version, 21400);
  const NcclAvailability found = look_for_gpus(NcclOptions{}, library);
  EXPECT_EQ(found.usable == 0, found.why_not.front() != '\0') << found.why_not.data();
}

}  // namespace
}  // namespace syncline::comm
