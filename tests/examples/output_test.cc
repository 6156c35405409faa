// The output and the files of a run, and other programs that read its checkpoint.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "syncline/data/dataset.h"
#include "tests/examples/job.h"
#include "tests/examples/small_data.h"

namespace syncline::examples {
namespace {

class Output : public testing::Test {
 protected:
  void SetUp() override { write_small_data(scratch_.directory(), 100, 20); }
  std::string command(const std::string& length = "--epochs 2 --batch 30") const {
    return fmt::format("{0} --model softmax --data {1} {2} --threads 1 --checkpoint {1}/new", SYNCLINE_FASHION_MNIST,
                       scratch_.directory(), length);
  }
  static void expect_plain_lines(const io::Outcome& outcome) {
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_EQ(outcome.output.find('\r'), std::string::npos) << outcome.output;
    EXPECT_EQ(outcome.output.find('\x1b'), std::string::npos) << outcome.output;
    const std::regex progress(
        R"(epoch 2/2 step 4/4  loss \d\.\d{4}  accuracy [01]\.\d{4}  \d+ samples/s  took \d+:\d\d)");
    EXPECT_TRUE(std::regex_search(outcome.output, progress)) << outcome.output;
    EXPECT_CONTAINS(outcome.output, "test accuracy ");
  }

  io::Scratch scratch_;
};

constexpr const char* kMpirun = SYNCLINE_MPIRUN " --oversubscribe --allow-run-as-root -n 2 ";

TEST_F(Output, PlainLinesIntoAFile) { expect_plain_lines(io::run_shell(command())); }
TEST_F(Output, PlainLinesIntoAFileUnderMpirun) { expect_plain_lines(io::run_shell(kMpirun + command())); }
TEST_F(Output, PlainLinesIntoAFileFromAScriptUnderMpirun) {
  io::write_file(scratch_.path("run.sh"), command() + "\ntrue\n");
  expect_plain_lines(io::run_shell(kMpirun + ("sh " + scratch_.path("run.sh"))));
}

TEST_F(Output, VerboseTellsHowTheRanksAreJoined) {
  const std::string line = "syncline: 2 ranks on 1 node, shared memory within a node\n";
  const auto count = [&](const std::string& words) {
    const io::Outcome outcome = io::run_shell("SYNCLINE_TRANSPORT=shared " + words + " 2>&1");
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    int found = 0;
    for (auto at = outcome.output.find(line); at != outcome.output.npos; at = outcome.output.find(line, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count(kMpirun + command() + " --verbose"), 1);
  EXPECT_EQ(count("SYNCLINE_VERBOSE=true " + (kMpirun + command())), 1);
  EXPECT_EQ(count(kMpirun + command()), 0);
}

// Shared memory is a file. sh's ulimit -f counts blocks of 512 bytes.
TEST_F(Output, ALimitOnFilesMeansCopies) {
  const io::Outcome outcome =
      io::run_shell(fmt::format("ulimit -f 12000; {} {} --model mlp --data {} --epochs 1 --batch 50 --threads 1 2>&1",
                                kMpirun, SYNCLINE_FASHION_MNIST, scratch_.directory()));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "no shared memory for variables (files may have 6000 KiB (ulimit -f), ");
  EXPECT_CONTAINS(outcome.output, "all-reduces copy their data");
  EXPECT_CONTAINS(outcome.output, "(files may have 6000 KiB (ulimit -f), ");
  EXPECT_CONTAINS(outcome.output, "test accuracy ");
}

TEST_F(Output, FilesForThoseWhoWatch) {
  const std::string files =
      fmt::format(" --csv {0}/a.csv --tensorboard {0}/board --metrics {0}/a.prom --digest", scratch_.directory());
  const std::string alone = " | grep digest | cut -d' ' -f4 | sort -u";
  const io::Outcome watched = io::run_shell(kMpirun + command() + files + alone);
  std::filesystem::remove_all(scratch_.path("new"));
  EXPECT_EQ(watched.output, io::run_shell(kMpirun + command() + " --digest" + alone).output) << "it trains otherwise";
  const std::string table = io::read_file(scratch_.path("a.csv"));
  EXPECT_TRUE(table.starts_with("epoch,accuracy,loss,val_accuracy,val_loss\n0,")) << table;
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3) << table;
  EXPECT_CONTAINS(io::read_file(scratch_.path("a.prom")), "syncline_checkpoint_timestamp_seconds 1");
  for (const char* run : {"board/train", "board/validation"})
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch_.path(run)), {}), 1);
}

TEST_F(Output, EarlyStopping) {
  // The network soon learns the few rows; after that the loss does not fall in every epoch.
  const io::Outcome outcome =
      io::run_shell(kMpirun + command("--epochs 50 --batch 1 --optimizer sgd --early-stopping 1"));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "epoch 2/50 ");
  EXPECT_EQ(outcome.output.find("epoch 50/50 "), std::string::npos) << outcome.output;
  EXPECT_TRUE(std::filesystem::exists(scratch_.path("new/best")));
}

TEST_F(Output, BarOnATerminal) {
  if (!io::has_program("script")) GTEST_SKIP() << "script is not installed";
  for (const std::string& launcher : {std::string("TERM=xterm "), std::string("TERM=xterm ") + kMpirun}) {
    const io::Outcome outcome = io::run_shell("script -qec \"" + launcher + command() + "\" /dev/null");
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_CONTAINS(outcome.output, "\repoch 2/2 [========================] step 4/4");
  }
}

TEST_F(Output, CheckpointIsReadByTheToolsOfHdf5) {
  if (!io::has_program("h5ls") || !io::has_program("h5dump")) GTEST_SKIP() << "hdf5-tools is not installed";
  ASSERT_EQ(io::run_shell(command()).status, 0);
  const io::Outcome listed = io::run_shell("h5ls -r " + scratch_.path("new/latest"));
  EXPECT_EQ(listed.status, 0) << listed.output;
  EXPECT_TRUE(std::regex_search(listed.output, std::regex(R"(/dense_1/kernel:0 +Dataset \{784, 10\})")))
      << listed.output;
  const io::Outcome dumped = io::run_shell("h5dump " + scratch_.path("new/latest"));
  EXPECT_EQ(dumped.status, 0) << dumped.output.substr(0, 1000);
  EXPECT_CONTAINS(dumped.output, "ATTRIBUTE \"layer_names\"");
  EXPECT_EQ(dumped.output.find("error"), std::string::npos);
}

TEST_F(Output, DebiansDataSet) {
  if (!std::filesystem::exists(io::kFashionMnistDirectory)) GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  const io::Outcome outcome = io::run_shell(std::string(SYNCLINE_FASHION_MNIST) +
                                            " --model softmax --samples 2000 --epochs 2 --batch 50 --threads 1");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  std::smatch found;
  ASSERT_TRUE(std::regex_search(outcome.output, found, std::regex(R"(test accuracy (0\.\d+))"))) << outcome.output;
  EXPECT_GT(std::stod(found[1]), 0.6) << outcome.output;
}

}  // namespace
}  // namespace syncline::examples
