// Callbacks that write files: the contents, the rank that writes, and trainings that continue when a write fails.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>

#include "syncline/session.h"
#include "syncline/training/callbacks/csv_logger.h"
#include "syncline/training/callbacks/metrics_exporter.h"
#include "syncline/training/callbacks/tensor_board.h"
#include "tests/io/scratch.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/training/callbacks/scripted_fit.h"
#include "tests/runtime/training/small_fit.h"

namespace syncline::training {
namespace {

using io::read_file;

// Adds another log beside the loss in even epochs.
class Extra : public Callback {
 public:
  explicit Extra(std::string name) : name_(std::move(name)) {}
  void on_epoch_end(Fit&, std::int64_t epoch, Logs& logs) override {
    if (epoch % 2 == 0) logs.set(name_, 0.1);
  }

 private:
  std::string name_;
};

class FilesTest : public ::testing::Test {
 protected:
  // Trains to the end. Returns the text on standard error.
  std::string train(ScriptedFit& fit, std::vector<Callback*> callbacks) {
    ::testing::internal::CaptureStderr();
    const FitState end = fit.run(std::move(callbacks));
    EXPECT_EQ(end.counts.epoch, static_cast<std::int64_t>(fit.losses.size()));
    return ::testing::internal::GetCapturedStderr();
  }

  Session session_{3};
  SessionScope scope_{session_};
  io::Scratch scratch_;
  const std::string csv_ = scratch_.path("a.csv");
};

TEST_F(FilesTest, ATableOfTheEpochs) {
  ScriptedFit fit({0.5, 1e-7, -3});
  Extra extra("a, \"b\"");
  CsvLogger logger(csv_, nullptr);
  for (int i = 0; i < 2; ++i) {  // a new training begins a new table
    EXPECT_EQ(train(fit, {&extra, &logger}), "");
    EXPECT_EQ(read_file(csv_), "epoch,\"a, \"\"b\"\"\",loss\n0,0.1,0.5\n1,NA,1e-07\n2,0.1,-3\n");
  }
}

TEST_F(FilesTest, AResumedTableDropsWhatIsDoneAgain) {
  ScriptedFit fit({5, 4, 3, 2});
  CsvLogger first(csv_, nullptr), second(csv_, nullptr);
  const FitState state = fit.run({&first}, nullptr, 2);
  EXPECT_EQ(read_file(csv_), "epoch,loss\n0,5\n1,4\n");
  for (const char* rest : {"", "2,77\n3,77\n", "2,7"}) {
    io::write_file(csv_, std::string("epoch,loss\n0,5\n1,4\n") + rest);
    fit.run({&second}, &state);
    EXPECT_EQ(read_file(csv_), "epoch,loss\n0,5\n1,4\n2,3\n3,2\n") << rest;
  }
  std::filesystem::remove(csv_);
  fit.run({&second}, &state);
  EXPECT_EQ(read_file(csv_), "epoch,loss\n2,3\n3,2\n");
}

TEST_F(FilesTest, ATableOfSomethingElseIsLeftAlone) {
  ScriptedFit fit({5, 4, 3, 2});
  const FitState state = fit.run({}, nullptr, 2);
  const std::vector<std::pair<std::string, std::string>> tables{
      {"epoch,error\n0,5\n",
       ": its columns are epoch,error, but those of this training are epoch,loss; give another file"},
      {"name\nx,5\n", ": its row 'x,5' does not begin with an epoch; give another file"}};
  for (const auto& [table, reason] : tables) {
    io::write_file(csv_, table);
    CsvLogger logger(csv_, nullptr);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(fit.run({&logger}, &state).counts.epoch, 4);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "syncline: cannot add epochs to '" + csv_ + "'" + reason + "; training goes on\n");
    EXPECT_EQ(read_file(csv_), table);
  }
}

TEST_F(FilesTest, ADirectoryThatIsMissing) {
  ScriptedFit fit({3, 2, 1});
  const std::string csv = scratch_.path("none/a.csv"), metrics = scratch_.path("none/a.prom");
  CsvLogger logger(csv, nullptr);
  MetricsExporter exporter({.path = metrics});
  EXPECT_EQ(train(fit, {&logger}),
            "syncline: cannot write '" + csv + "': No such file or directory; training goes on\n");
  EXPECT_EQ(train(fit, {&exporter}), "syncline: cannot save '" + metrics + "': opening '" + metrics +
                                         ".tmp': No such file or directory; the previous file, if any, is unchanged; "
                                         "training goes on\n");
  // When the directory exists, the rows whose write failed are written too.
  struct Makes : Callback {
    std::string folder;
    void on_epoch_begin(Fit&, std::int64_t epoch) override {
      if (epoch == 2) std::filesystem::create_directory(folder);
    }
  } makes;
  makes.folder = scratch_.path("none");
  train(fit, {&makes, &logger, &exporter});
  EXPECT_EQ(read_file(csv), "epoch,loss\n0,3\n1,2\n2,1\n");
  EXPECT_CONTAINS(read_file(metrics), "syncline_state{state=\"finished\"} 1\n");
}

TEST_F(FilesTest, AFullDisk) {
  ScriptedFit fit({3, 2, 1});
  CsvLogger logger("/dev/full", nullptr);
  EXPECT_EQ(train(fit, {&logger}),
            "syncline: cannot write '/dev/full': No space left on device (free some space); training goes on\n");
  io::write_file(scratch_.path("file"), "");
  TensorBoard board({.folder = scratch_.path("file")});
  EXPECT_EQ(train(fit, {&board}), "syncline: cannot write event files into '" + scratch_.path("file/train") +
                                      "': Not a directory; training goes on\n");
}

TEST_F(FilesTest, EventsThatDoNotFitEndWithAWholeOne) {
  ScriptedFit fit(std::vector<double>(20, 1.0));
  TensorBoard board({.folder = scratch_.path("run")});
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{500, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  std::string said = train(fit, {&board});
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_CONTAINS(said, "File too large");
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  const auto folder = std::filesystem::directory_iterator(scratch_.path("run/train"));
  std::string bytes = read_file(folder->path().string());
  EXPECT_GT(bytes.size(), 300u);
  std::size_t at = 0;
  while (at + 12 < bytes.size()) at += 16 + static_cast<unsigned char>(bytes[at]);  // lengths are below 256
  EXPECT_EQ(at, bytes.size());
}

TEST_F(FilesTest, MetricsSayHowItEnded) {
  const std::string path = scratch_.path("a.prom");
  const std::vector<std::pair<std::string, std::string>> ends{
      {"", "finished"}, {"pause", "saved"}, {"throw", "failed"}};
  for (const auto& [end, state] : ends) {
    Witness witness;
    (end == "pause" ? witness.pause_at : witness.throw_at) = end.empty() ? "" : "step end 3";
    MetricsExporter exporter({.path = path});
    SmallFit small(1, {&witness, &exporter});
    if (end == "throw") EXPECT_THROW(small.fit->run(), std::runtime_error);
    else small.fit->run();
    EXPECT_CONTAINS(read_file(path), "syncline_state{state=\"" + state + "\"} 1\n");
    EXPECT_CONTAINS(read_file(path), end.empty() ? "syncline_epochs 1\n" : "syncline_steps 3\n");
  }
}

TEST_F(FilesTest, OnlyTheFirstRankWrites) {
  syncline::testing::on_ranks(3, [&](comm::Communicator& communicator) {
    CsvLogger logger(csv_, &communicator);
    TensorBoard board({.folder = scratch_.path("run"), .communicator = &communicator});
    MetricsExporter exporter({.path = scratch_.path("a.prom"), .communicator = &communicator});
    SmallFit small(2, {&logger, &board, &exporter});
    small.fit->run();
  });
  EXPECT_EQ(scratch_.files(), (std::vector<std::string>{"a.csv", "a.prom", "run"}));
  const std::string table = read_file(csv_);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3);
  for (const char* run : {"run/train", "run/validation"})
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch_.path(run)), {}), 1);
  EXPECT_CONTAINS(read_file(scratch_.path("a.prom")), "syncline_ranks 3\n");
}

}  // namespace
}  // namespace syncline::training
