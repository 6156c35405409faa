// A training that is stopped or killed in the middle of an epoch and resumed ends with the bits of the unbroken one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <future>
#include <thread>

#include "tests/examples/job.h"
#include "tests/examples/small_data.h"

namespace syncline::examples {
namespace {

using namespace std::chrono_literals;

constexpr int kStepsOfEpoch = 26;  // the last one of 2 rows
constexpr int kEpochs = 3;

class Resume : public testing::Test {
 protected:
  void SetUp() override { write_small_data(scratch_.directory(), 1002, 60); }

  JobOptions job(int ranks, const std::string& file, const std::string& more = "", int epochs = kEpochs) const {
    return {.ranks = ranks,
            .layout = layout_,
            .arguments = fmt::format("--data {0} --model mlp --optimizer adam --batch 40 --epochs {1} --save-every 7 "
                                     "--threads 1 --digest --checkpoint {0}/{2} {3}",
                                     scratch_.directory(), epochs, file, more)};
  }
  Ended train(int ranks, const std::string& file, const std::string& more = "", int epochs = kEpochs) const {
    const Ended ended = run_job(scratch_, job(ranks, file, more, epochs));
    expect_success(ended);
    return ended;
  }
  io::TrainingState state_of(const std::string& file) const {
    return io::summarize_checkpoint(scratch_.path(file) + "/latest").state;
  }
  void expect_equal_files(const std::string& a, const std::string& b) const {
    io::expect_equal(io::load_checkpoint(scratch_.path(a) + "/latest"),
                     io::load_checkpoint(scratch_.path(b) + "/latest"));
  }

  // Trains until a checkpoint exists, then kills a rank. False if the job ended first, or saved last between epochs.
  bool kill_in_epoch(int rank, const std::string& file) const {
    std::filesystem::remove_all(scratch_.path(file));
    auto running = std::async(std::launch::async, [&] { return run_job(scratch_, job(2, file)); });
    while (running.wait_for(1ms) != std::future_status::ready &&
           !std::filesystem::exists(scratch_.path(file) + "/latest")) {
    }
    if (const auto process = process_of(scratch_, rank)) kill(*process, SIGKILL);
    const auto killed = std::chrono::steady_clock::now();
    const Ended ended = running.get();
    EXPECT_LT(std::chrono::steady_clock::now() - killed, 10s) << ended.trace;
    if (ended.code == 0) return false;
    for (const auto& code : ended.exit) EXPECT_NE(code.value_or(1), 0) << ended.trace;
    EXPECT_EQ(ended.exit[static_cast<std::size_t>(rank)].value_or(137), 137) << ended.trace;
    return state_of(file).step > 0;
  }

  io::Scratch scratch_;
  std::string layout_;  // empty: the test's name selects one
};

class KilledRank : public Resume, public testing::WithParamInterface<std::tuple<const char*, int>> {};

TEST_P(KilledRank, IsResumed) {
  const auto [layout, rank] = GetParam();
  layout_ = layout;
  const Ended whole = run_job(scratch_, job(2, "unbroken"));
  if (whole.code == 77) GTEST_SKIP() << whole.out;
  expect_success(whole);
  const std::string unbroken = common_digest(whole, 2);
  bool killed = false;
  for (int i = 0; i < 5 && !killed; ++i) killed = kill_in_epoch(rank, "killed");
  ASSERT_TRUE(killed) << "the job ended before it could be killed, five times";
  EXPECT_LT(state_of("killed").global_step, kEpochs * kStepsOfEpoch);
  EXPECT_EQ(common_digest(train(2, "killed", "--resume"), 2), unbroken);
  expect_equal_files("killed", "unbroken");
}

INSTANTIATE_TEST_SUITE_P(EachRank, KilledRank,
                         testing::Combine(testing::Values("one_node", "by_node", "messages"), testing::Range(0, 2)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param), std::get<1>(info.param));
                         });

TEST_F(Resume, AfterAStop) {
  const std::string unbroken = common_digest(train(2, "unbroken"), 2);
  train(2, "stopped", "--max-steps 33");
  EXPECT_EQ(state_of("stopped").epoch, 1);
  EXPECT_EQ(state_of("stopped").step, 33 - kStepsOfEpoch);
  train(2, "stopped", fmt::format("--resume --max-steps {}", 2 * kStepsOfEpoch));  // stops between two epochs
  EXPECT_EQ(state_of("stopped").epoch, 2);
  EXPECT_EQ(state_of("stopped").step, 0);
  EXPECT_EQ(common_digest(train(2, "stopped", "--resume"), 2), unbroken);
  expect_equal_files("stopped", "unbroken");
  EXPECT_EQ(common_digest(train(2, "stopped", "--resume"), 2), unbroken) << "nothing was left to do";
}

TEST_F(Resume, OnOneRank) {
  const std::string unbroken = common_digest(train(1, "unbroken"), 1);
  train(1, "stopped", "--max-steps 10");
  // The checkpoint's seed overrides --seed.
  EXPECT_EQ(common_digest(train(1, "stopped", "--resume --seed 77"), 1), unbroken);
  expect_equal_files("stopped", "unbroken");
}

TEST_F(Resume, WithoutACheckpointStartsFromTheBeginning) {
  const std::string unbroken = common_digest(train(2, "unbroken", "", 1), 2);
  const Ended ended = train(2, "new", "--resume", 1);
  EXPECT_CONTAINS(ended.out, "training starts from the beginning");
  EXPECT_EQ(common_digest(ended, 2), unbroken);
  expect_equal_files("new", "unbroken");
}

}  // namespace
}  // namespace syncline::examples
