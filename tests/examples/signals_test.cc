// A job that a signal stops ends with a checkpoint and a status file, and the resumed job has the bits of the unbroken
// one. If a rank dies, the job saves the last finished step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <tuple>

#include "tests/examples/job.h"
#include "tests/examples/small_data.h"

namespace syncline::examples {
namespace {

using namespace std::chrono_literals;

constexpr const char* kEndless = "--epochs 100000";

class Signals : public testing::Test {
 protected:
  void SetUp() override { write_small_data(scratch_.directory(), 1002, 60); }

  JobOptions job(int ranks, const std::string& folder, const std::string& more = "",
                 const std::string& epochs = "--epochs 6", const std::string& layout = "") const {
    return {.ranks = ranks,
            .layout = layout,
            .arguments = fmt::format("--data {0} --model mlp --optimizer adam --batch 40 {3} --save-every 1000 "
                                     "--threads 1 --digest --checkpoint {0}/{1} {2}",
                                     scratch_.directory(), folder, more, epochs)};
  }
  Ended train(int ranks, const std::string& folder, const std::string& more = "",
              const std::string& epochs = "--epochs 6") const {
    const Ended ended = run_job(scratch_, job(ranks, folder, more, epochs));
    expect_success(ended);
    return ended;
  }
  nlohmann::json status(const std::string& folder) const {
    return nlohmann::json::parse(io::read_file(scratch_.path(folder + "/status.json")));
  }
  io::TrainingState latest(const std::string& folder) const {
    return io::summarize_checkpoint(scratch_.path(folder + "/latest")).state;
  }
  // The process that started the ranks' shells.
  std::optional<int> launcher() const {
    const auto rank = process_of(scratch_, 0);
    if (!rank) return {};
    const int shell = parent_of(*rank);
    return shell == 0 ? std::nullopt : std::optional<int>(parent_of(shell));
  }

  // Runs a job, and calls `act` as soon as the first epoch's checkpoint exists.
  Ended disturb(const JobOptions& options, const std::string& folder, const std::function<void()>& act) const {
    auto running = std::async(std::launch::async, [&] { return run_job(scratch_, options); });
    while (running.wait_for(1ms) != std::future_status::ready &&
           !std::filesystem::exists(scratch_.path(folder) + "/latest")) {
    }
    act();
    return running.get();
  }

  io::Scratch scratch_;

 private:
  static int parent_of(int process) {
    std::string status;
    std::getline(std::ifstream(fmt::format("/proc/{}/stat", process)), status);
    int parent = 0;
    const std::size_t name_end = status.rfind(')');
    if (name_end != std::string::npos) std::sscanf(status.c_str() + name_end, ") %*c %d", &parent);
    return parent;
  }
};

TEST_F(Signals, ToMpirunEndWithACheckpointAndGoOnWithTheSameBits) {
  const std::string unbroken = common_digest(train(2, "unbroken"), 2);
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    SCOPED_TRACE(strsignal(signal));
    const std::string folder = fmt::format("run{}", signal);
    const Ended ended = disturb(job(2, folder), folder, [&] {
      if (const auto process = launcher()) kill(*process, signal);
    });
    EXPECT_EQ(ended.code, 75) << ended.trace;
    EXPECT_EQ(status(folder)["state"], "saved") << ended.trace;
    EXPECT_EQ(status(folder)["exit_code"], 75);
    EXPECT_EQ(status(folder)["reason"], signal == SIGUSR1 ? "SIGUSR1" : "SIGUSR2");
    EXPECT_EQ(latest(folder).global_step, status(folder)["global_step"].get<std::int64_t>());
    EXPECT_EQ(common_digest(train(2, folder, "--resume"), 2), unbroken);
    EXPECT_EQ(status(folder)["state"], "finished");
  }
}

// mpirun sends SIGCONT at once, SIGTERM after a second and SIGKILL after another one. Its own exit code is 1 for all
// exit codes of the ranks, so the test reads the status file.
TEST_F(Signals, SigtermToMpirunIsAnsweredInTime) {
  const Ended ended = disturb(job(2, "run", "", kEndless, "one_node"), "run", [&] {
    if (const auto process = launcher()) kill(*process, SIGTERM);
  });
  EXPECT_NE(ended.code, 0) << ended.trace;
  EXPECT_EQ(status("run")["state"], "saved") << ended.trace;
  EXPECT_EQ(status("run")["exit_code"], 75);
  EXPECT_EQ(status("run")["reason"], "SIGTERM");
  EXPECT_EQ(latest("run").global_step, status("run")["global_step"].get<std::int64_t>());
  const std::string arguments = fmt::format("--resume --max-steps {}", latest("run").global_step + 9);
  const Ended resumed = run_job(scratch_, job(3, "run", arguments, kEndless, "one_node"));
  EXPECT_EQ(resumed.code, 0) << resumed.trace;
  ASSERT_EQ(resumed.complaints.size(), 1u) << resumed.trace;
  EXPECT_CONTAINS(resumed.complaints[0], "was saved with ranks 0-1 and continues with ranks 0-2");
}

// Slurm's srun and kill(1) may signal a single rank.
TEST_F(Signals, ToOneRankStopAll) {
  const Ended ended = disturb(job(3, "run", "", kEndless), "run", [&] {
    if (const auto process = process_of(scratch_, 2)) kill(*process, SIGUSR1);
  });
  EXPECT_EQ(ended.code, 75) << ended.trace;
  EXPECT_EQ(status("run")["state"], "saved");
  EXPECT_EQ(status("run")["reason"], "another rank was asked to stop");
}

TEST_F(Signals, ToContinueEndNothing) {
  const std::string unbroken = common_digest(train(2, "unbroken"), 2);
  const Ended ended = disturb(job(2, "run"), "run", [&] {
    if (const auto process = process_of(scratch_, 1)) {
      kill(*process, SIGSTOP);
      std::this_thread::sleep_for(50ms);
      kill(*process, SIGCONT);
    }
  });
  expect_success(ended);
  EXPECT_EQ(common_digest(ended, 2), unbroken);
}

TEST_F(Signals, WithoutMpirun) {
  const std::string command = fmt::format(
      "{} {} & process=$!; while ! test -e {}/run/latest; do sleep 0.01; done; "
      "kill -TERM $process; wait $process",
      SYNCLINE_FASHION_MNIST, job(1, "run", "", kEndless).arguments, scratch_.directory());
  EXPECT_EQ(io::run_shell(command).status, 75);
  EXPECT_EQ(status("run")["reason"], "SIGTERM");
}

TEST_F(Signals, WithoutAFolderDoWhatTheyAlwaysDo) {
  const std::string command = fmt::format(
      "{} --data {} --model mlp --epochs 100000 --threads 1 & process=$!; sleep 0.5; kill -USR1 $process; "
      "wait $process",
      SYNCLINE_FASHION_MNIST, scratch_.directory());
  EXPECT_EQ(io::run_shell(command).status, 128 + SIGUSR1);
}

// mpirun ends the other ranks two seconds later. Before that the lowest living rank saves, if it shares a node with the
// dead rank and with rank 0. Otherwise the last periodic checkpoint stays.
class DeadRank : public Signals, public testing::WithParamInterface<std::tuple<const char*, int>> {};

TEST_P(DeadRank, LeavesTheLastFinishedStep) {
  const auto [layout, dead] = GetParam();
  JobOptions options = job(3, "run", "", "--epochs 6", layout);
  options.prelude = fmt::format("export SYNCLINE_ALLOW_FAULTS=1 SYNCLINE_FAULT={}:60:kill", dead);
  const Ended ended = run_job(scratch_, options);
  if (ended.code == 77) GTEST_SKIP() << ended.out;
  EXPECT_EQ(ended.code, 137) << ended.trace;
  const bool by_node = layout == std::string_view("by_node");  // ranks 0 and 1 on the first one
  if (layout == std::string_view("one_node") || (by_node && dead != 2)) {
    EXPECT_EQ(status("run")["state"], "saved") << ended.trace;
    EXPECT_TRUE(status("run")["exit_code"].is_null());
    EXPECT_CONTAINS(status("run")["reason"].get<std::string>(), fmt::format("rank {} has died", dead));
    const int saves = dead != 0 ? 0 : 1;
    EXPECT_CONTAINS(ended.trace, fmt::format("rank {} has saved the last finished step, ", saves));
    // Step 60 of the fault is within a later epoch of 26 steps; it also counts the steps that draw initial values.
    EXPECT_GT(latest("run").global_step, 26);
    EXPECT_NE(latest("run").step, 0);
  }
  expect_success(run_job(scratch_, job(3, "run", "--resume", "--epochs 6", layout)));
  EXPECT_EQ(latest("run").epoch, 6);
}

INSTANTIATE_TEST_SUITE_P(EachRank, DeadRank,
                         testing::Combine(testing::Values("one_node", "by_node", "messages"), testing::Range(0, 3)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param), std::get<1>(info.param));
                         });

// A checkpoint that is a single file, as earlier versions wrote it: the resumed training saves into a folder.
TEST_F(Signals, AFileIsGoneOnFromInAFolder) {
  const std::string unbroken = common_digest(train(2, "unbroken"), 2);
  train(2, "begun", "--max-steps 40");
  std::filesystem::copy_file(scratch_.path("begun/step-0000000040.h5"), scratch_.path("old.h5"));
  EXPECT_EQ(common_digest(train(2, "old.h5", "--resume"), 2), unbroken);
  EXPECT_EQ(latest("old").epoch, 6);
  EXPECT_EQ(io::summarize_checkpoint(scratch_.path("old.h5")).state.global_step, 40);
}

// Rank 0 reads the checkpoint and sends it, because other ranks may see another disk.
TEST_F(Signals, ACheckpointThatOnlyTheFirstRankSees) {
  const std::string unbroken = common_digest(train(2, "unbroken"), 2);
  train(2, "begun", "--max-steps 40");
  JobOptions options = job(2, "begun", "--resume");
  options.prelude = "test $rank = 1 && set -- \"${@//begun/nowhere}\"";
  const Ended ended = run_job(scratch_, options);
  expect_success(ended);
  EXPECT_EQ(common_digest(ended, 2), unbroken);
}

}  // namespace
}  // namespace syncline::examples
