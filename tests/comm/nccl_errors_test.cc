// Errors of comm/nccl: an error at every call, calls that never end, and callers that give up.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <thread>

#include "comm/local/local_communicator.h"
#include "comm/nccl/with_nccl.h"
#include "tests/comm/nccl_ranks.h"
#include "tests/comm/nccl_stand_in/stand_in.h"

namespace syncline::comm {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using stand_in::Behaviour;
using stand_in::calls_of;

constexpr std::int64_t kCount = 30011;  // of float32: six pieces

constexpr std::array kCalls{"cudaGetDeviceCount",
                            "cudaSetDevice",
                            "cudaDeviceGetPCIBusId",
                            "cudaHostAlloc",
                            "cudaFreeHost",
                            "cudaHostRegister",
                            "cudaHostUnregister",
                            "cudaMalloc",
                            "cudaFree",
                            "cudaStreamCreateWithFlags",
                            "cudaStreamSynchronize",
                            "cudaStreamWaitEvent",
                            "cudaStreamDestroy",
                            "cudaEventCreateWithFlags",
                            "cudaEventRecord",
                            "cudaEventQuery",
                            "cudaEventDestroy",
                            "cudaMemcpyAsync",
                            "ncclGetVersion",
                            "ncclGetUniqueId",
                            "ncclCommInitRankConfig",
                            "ncclCommGetAsyncError",
                            "ncclAllReduce",
                            "ncclCommFinalize",
                            "ncclCommDestroy"};

class NcclErrors : public testing::Test {
 protected:
  void TearDown() override { expect_in_order(); }

  static void expect_in_order() {
    EXPECT_EQ(stand_in::violations(), std::vector<std::string>{});
    EXPECT_EQ(stand_in::alive(), std::vector<std::string>{});
  }

  static NcclOptions hasty_options() {
    NcclOptions options = stand_in_options();
    options.limit = 300ms;
    return options;
  }
};

// With data in ordinary memory, and in pinned memory.
class NcclEnds : public NcclErrors, public testing::WithParamInterface<void (*)(Communicator&, std::int64_t)> {};
INSTANTIATE_TEST_SUITE_P(Memory, NcclEnds, testing::Values(&check_sum, &check_shared_sum),
                         [](const auto& info) { return info.index == 0 ? "Ordinary" : "Pinned"; });

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Each call fails at its first, a middle and a late time, on whichever rank makes it. During the start or the use of
// NCCL, that rank gets a CommError and another rank at worst a StallError. At the end, when all results are complete,
// the error is only reported.
TEST_F(NcclErrors, AtEveryCall) {
  const auto body = [](Communicator& c) {
    check_sum(c, kCount);
    check_shared_sum(c, kCount);
    check_shared_sum(c, kCount);
  };
  stand_in::start_over({.in_progress = 1});
  for (const RankEnd& end : run_nccl_ranks(2, stand_in_options(), body)) ASSERT_EQ(end.error, "");
  std::map<std::string, int> counts;
  for (const char* call : kCalls) counts[call] = calls_of(call);
  for (const auto& [call, count] : counts) {
    ASSERT_GT(count, 0) << call << " is never called";
    for (const int at : std::set{1, (count + 1) / 2, std::max(1, count - 2)}) {
      SCOPED_TRACE(call + " fails at " + std::to_string(at) + " of " + std::to_string(count));
      stand_in::start_over({.fail = call, .fail_at = at, .fail_code = 3, .in_progress = 1});
      const auto begin = Clock::now();
      const auto ends = run_nccl_ranks(2, hasty_options(), body);
      EXPECT_LT(Clock::now() - begin, 5s);
      std::string all;
      for (const RankEnd& end : ends) {
        EXPECT_TRUE(end.error.empty() || end.comm) << end.error;
        all += end.error + "\n" + end.told;
      }
      if (calls_of(call) >= at) {
        EXPECT_TRUE(contains(all, call + " failed on the GPU") || contains(all, "NCCL: " + call + ": ")) << all;
      }
      expect_in_order();
    }
  }
}

// Shared memory that cannot be pinned is copied.
TEST_F(NcclErrors, SumsInMemoryThatCannotBePinned) {
  stand_in::start_over({.fail = "cudaHostRegister", .fail_at = 1});
  int told = 0;
  for (const RankEnd& end :
       run_nccl_ranks(2, stand_in_options(), [](Communicator& c) { check_shared_sum(c, kCount); })) {
    EXPECT_EQ(end.error, "");
    told +=
        contains(end.told, "cudaHostRegister failed") && contains(end.told, "; all-reduces copy their data") ? 1 : 0;
  }
  EXPECT_EQ(told, 1);
}

// A start that fails on one rank is the error of all.
TEST_F(NcclErrors, AFailedStartIsAnErrorOnEveryRank) {
  for (const char* call : {"cudaSetDevice", "cudaHostAlloc", "cudaMalloc", "cudaEventCreateWithFlags",
                           "cudaStreamCreateWithFlags", "ncclGetUniqueId", "ncclCommInitRankConfig"}) {
    SCOPED_TRACE(call);
    stand_in::start_over({.fail = call, .fail_at = 2 - (std::string(call) == "ncclGetUniqueId")});
    NcclOptions options = hasty_options();
    for (const RankEnd& end : run_nccl_ranks(2, options, [](Communicator& c) { check_sum(c, kCount); })) {
      EXPECT_TRUE(end.comm && contains(end.error, std::string(call) + " failed")) << end.error;
      EXPECT_EQ(end.told, "");
    }
    EXPECT_EQ(calls_of("ncclAllReduce"), 0);
    expect_in_order();
  }
}

void expect_stall(const Behaviour& behaviour, const std::string& text) {
  SCOPED_TRACE(text);
  stand_in::start_over(behaviour);
  NcclOptions options = stand_in_options();
  options.limit = 300ms;
  const auto begin = Clock::now();
  const auto ends = run_nccl_ranks(2, options, [](Communicator& c) { check_sum(c, kCount); });
  EXPECT_LT(Clock::now() - begin, 5s);
  for (const RankEnd& end : ends) EXPECT_TRUE(end.stall && contains(end.error, text)) << end.error;
  EXPECT_EQ(calls_of("ncclCommAbort"), 2);
}

TEST_F(NcclErrors, WhatNeverEndsIsAborted) {
  expect_stall({.hang = "ncclCommInitRankConfig"}, "ncclCommInitRankConfig is not done after 0.3 s");
  expect_stall({.hang = "ncclAllReduce"}, "ncclAllReduce is not done after 0.3 s");
  expect_stall({.stuck = true},
               "all_reduce of plan beef step 4 bucket 2, sum of float32 x 30011: ncclAllReduce is not done");
}

TEST_P(NcclEnds, AStalledTransferIsAStallError) {
  stand_in::start_over({.stuck = true});
  NcclOptions options = stand_in_options();
  options.limit = 300ms;
  for (const RankEnd& end : run_nccl_ranks(2, options, [](Communicator& c) { GetParam()(c, kCount); }))
    EXPECT_TRUE(end.stall && contains(end.error, "NCCL: rank ") && contains(end.error, "; aborted")) << end.error;
}

TEST_F(NcclErrors, AnEndThatHangsIsAborted) {
  stand_in::start_over({.hang = "ncclCommFinalize"});
  for (const RankEnd& end : run_nccl_ranks(2, hasty_options(), [](Communicator& c) { check_sum(c, kCount); })) {
    EXPECT_EQ(end.error, "");
    EXPECT_TRUE(contains(end.told, "ncclCommFinalize is not done after 0.3 s")) << end.told;
  }
  EXPECT_EQ(calls_of("ncclCommAbort"), 2);
}

TEST_F(NcclErrors, AnAbortThatHangsIsLeftAlone) {
  stand_in::start_over({.stuck = true, .abort_hangs = true});
  NcclOptions options = hasty_options();
  options.abort_limit = 300ms;
  const auto begin = Clock::now();
  const auto ends = run_nccl_ranks(2, options, [](Communicator& c) { check_sum(c, kCount); });
  EXPECT_LT(Clock::now() - begin, 5s);
  for (const RankEnd& end : ends)
    EXPECT_TRUE(end.stall && contains(end.error, "ncclCommAbort has not returned after 0.3 s")) << end.error;
  stand_in::release_aborts();
  for (int i = 0; i < 5000 && !stand_in::alive().empty(); ++i) std::this_thread::sleep_for(1ms);
}

// The caller must not free a wire whose memory an abandoned thread still uses.
TEST_F(NcclErrors, AWireIsNotClosedWhileAnAbortHangs) {
  stand_in::start_over({.stuck = true, .abort_hangs = true});
  NcclOptions options = hasty_options();
  options.abort_limit = 100ms;
  const std::unique_ptr<Wire> wire = with_nccl(std::move(make_local_wires(1).front()), options);
  std::vector<float> data(kCount);
  const Collective sum = make_all_reduce({}, data.data(), kCount, DType::kFloat32, Reduce::kSum);
  wire->begin(sum);
  EXPECT_THROW(while (wire->poll(sum) != Wire::Progress::kDone), StallError);
  EXPECT_FALSE(wire->close(/*clean=*/false));
  stand_in::release_aborts();
  for (int i = 0; i < 5000 && !stand_in::alive().empty(); ++i) std::this_thread::sleep_for(1ms);
}

TEST_F(NcclErrors, AnAbortThatFailsIsTold) {
  stand_in::start_over({.fail = "ncclCommAbort", .fail_at = 1, .fail_code = 3, .stuck = true});
  int told = 0;
  for (const RankEnd& end : run_nccl_ranks(2, hasty_options(), [](Communicator& c) { check_sum(c, kCount); })) {
    EXPECT_TRUE(end.stall) << end.error;
    told += contains(end.error, "; aborted, with an error: NCCL: rank ") && contains(end.error, "ncclCommAbort failed")
                ? 1
                : 0;
  }
  EXPECT_EQ(told, 1);
}

TEST_P(NcclEnds, AnotherRanksErrorIsTold) {
  stand_in::start_over({.stuck = true, .remote_error_at = 200});
  for (const RankEnd& end : run_nccl_ranks(2, stand_in_options(), [](Communicator& c) { GetParam()(c, kCount); }))
    EXPECT_TRUE(end.comm && contains(end.error, "ncclAllReduce failed on the GPU") &&
                contains(end.error, "remote error (code 6): last words"))
        << end.error;
}

// The caller's limit ends before NCCL's. The caller then frees its buffer, which no thread may touch any more.
TEST_P(NcclEnds, CallerThatGivesUpIsLeftAlone) {
  stand_in::start_over({.stuck = true});
  const auto begin = Clock::now();
  const auto ends =
      run_nccl_ranks(2, stand_in_options(), [](Communicator& c) { GetParam()(c, kCount); }, {.wait_limit = 300ms});
  EXPECT_LT(Clock::now() - begin, 5s);
  for (const RankEnd& end : ends) EXPECT_TRUE(end.stall && contains(end.error, "has waited ")) << end.error;
  EXPECT_EQ(calls_of("ncclCommAbort"), 2);
}

// An error ends NCCL, and every later call throws the same error.
TEST_F(NcclErrors, TheErrorStays) {
  stand_in::start_over({.hang = "ncclAllReduce", .fail_at = 3});
  run_nccl_ranks(2, hasty_options(), [](Communicator& c) {
    std::vector<float> data(kCount);
    std::string first, second;
    for (std::string* text : {&first, &second}) try {
        c.wait(c.all_reduce({}, data.data(), kCount, DType::kFloat32, Reduce::kSum));
      } catch (const StallError& error) {
        *text = error.what();
      }
    EXPECT_TRUE(contains(first, "ncclAllReduce is not done after 0.3 s")) << first;
    EXPECT_EQ(first, second);
  });
}

}  // namespace
}  // namespace syncline::comm
