// Runs `syncline ls`: its output, and its exit statuses 0, 1 (failure) and 2 (usage).
#include <gtest/gtest.h>

#include <algorithm>

#include "syncline/checkpoint/checkpoint.h"
#include "tests/tools/run.h"

namespace syncline::tools {
namespace {

using io::Outcome;
using io::Scratch;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

TEST(Ls, ListsACheckpoint) {
  const Scratch scratch;
  io::Checkpoint checkpoint = io::small_checkpoint();
  checkpoint.version = "0.1";
  checkpoint.metric = 0.25;
  checkpoint.notes = {{"callback/stopping", "{}"}, {"sums", "[1.5]"}};
  io::save_checkpoint(scratch.path("a.h5"), checkpoint);
  const Outcome outcome = run("ls " + scratch.path("a.h5"));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, R"(weights
  dense_1/kernel:0                  float32  (3, 4)   48
  dense_1/bias:0                    float32  (4,)     16
  dense_2/kernel:0                  float32  (4, 2)   32
  dense_2/bias:0                    float32  (2,)      8
optimizer
  Adam/iterations:0                 int64    ()        8
  training/Adam/dense_1/kernel/m:0  float32  (3, 4)   48
state
  epoch        2
  step         5
  global step  943
  seed         18446744073709551615
  random step  943
  batch        128
  samples      60000
  model        mlp
  version      0.1
  metric       0.25
  notes        callback/stopping, sums
total 6 arrays, 160 bytes
)");
}

TEST(Ls, Json) {
  const Scratch scratch;
  io::Checkpoint checkpoint = io::small_checkpoint();
  checkpoint.layers.resize(2);
  checkpoint.layers[0].weights.resize(1);
  checkpoint.optimizer.clear();
  checkpoint.version = "0.1";
  checkpoint.metric = 0.25;
  checkpoint.notes = {{"sums", "[1.5]"}};
  io::save_checkpoint(scratch.path("a.h5"), checkpoint);
  const Outcome outcome = run("ls --json " + scratch.path("a.h5"));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, "{\n  \"file\": \"" + scratch.path("a.h5") + R"(",
  "model": "mlp",
  "version": "0.1",
  "metric": 0.25,
  "notes": {
    "sums": "[1.5]"
  },
  "state": {
    "epoch": 2,
    "step": 5,
    "global_step": 943,
    "seed": 18446744073709551615,
    "random_step": 943,
    "batch": 128,
    "samples": 60000
  },
  "weights": [
    {
      "name": "dense_1/kernel:0",
      "dtype": "float32",
      "shape": [
        3,
        4
      ],
      "bytes": 48
    }
  ],
  "optimizer": [],
  "bytes": 48
}
)");
}

TEST(Ls, DoesNotSteerTheTerminal) {
  const Scratch scratch;
  io::Checkpoint checkpoint;
  checkpoint.layers = {{"layer", {{"a\x1b[31mred", Array::scalar(1.0f)}}}};
  io::save_checkpoint(scratch.path("a.h5"), checkpoint);
  EXPECT_CONTAINS(run("ls " + scratch.path("a.h5")).output, "  a?[31mred  float32  ()  4\n");
}

TEST(Ls, FailuresAreOneLineAndStatusOne) {
  const Scratch scratch;
  io::write_file(scratch.path("a.h5"), "no checkpoint");
  const Outcome damaged = run("ls " + scratch.path("a.h5"));
  EXPECT_EQ(damaged.status, 1);
  EXPECT_EQ(damaged.output, "syncline: checkpoint '" + scratch.path("a.h5") +
                                "': is not an HDF5 file, or its beginning is damaged; use another checkpoint\n");
  const Outcome missing = run("ls /nowhere/a.h5");
  EXPECT_EQ(missing.status, 1);
  EXPECT_EQ(missing.output, "syncline: checkpoint '/nowhere/a.h5': cannot open: No such file or directory\n");
}

// By default HDF5 itself prints messages for damaged files and at the end of the process.
TEST(Ls, DamagedFilesAreOneLineToo) {
  const Scratch scratch;
  const std::string path = scratch.path("a.h5");
  io::save_checkpoint(path, io::small_checkpoint());
  const std::string whole = io::read_file(path);
  for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / 40) {
    std::string damaged = whole;
    for (std::size_t i = at; i < std::min(at + 64, whole.size()); ++i) damaged[i] = static_cast<char>(~damaged[i]);
    for (const std::string& bytes : {whole.substr(0, at), damaged}) {
      io::write_file(path, bytes);
      const Outcome outcome = run("ls " + path);
      if (outcome.status == 0) continue;  // the damage hit values or unused space, which ls does not read
      EXPECT_EQ(outcome.status, 1);
      EXPECT_TRUE(outcome.output.starts_with("syncline: checkpoint '" + path + "'")) << outcome.output;
      EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
    }
  }
}

TEST(Ls, OutputThatCannotBeWrittenIsAFailure) {
  const Scratch scratch;
  io::save_checkpoint(scratch.path("a.h5"), io::small_checkpoint());
  EXPECT_EQ(run("ls " + scratch.path("a.h5") + " > /dev/full").status, 1);
}

TEST(Ls, WrongUsageIsOneLineAndStatusTwo) {
  for (const char* arguments : {"", "ls", "ls --nonsense a.h5", "nonsense", "ls a b"}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_CONTAINS(outcome.output, "syncline: ");
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
  }
  EXPECT_CONTAINS(run("nonsense").output, "'nonsense' is no command");
  EXPECT_CONTAINS(run("verify --nonsense").output, "FILE is required");
  EXPECT_CONTAINS(run("--nonsense").output, "A subcommand is required");
}

TEST(Ls, HelpIsNoError) {
  const Outcome outcome = run("ls --help");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_CONTAINS(outcome.output, "--json");
}

// OpenBLAS's threads then find no memory and never end by themselves.
TEST(Tool, EndsWithLittleMemory) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need the address space";
  if (run("--version").output.find("OpenBLAS 0.3.29") != std::string::npos)
    GTEST_SKIP() << "OpenBLAS 0.3.29 waits for memory for ever when it is loaded";
  for (const char* limit : {"-v 180000", "-d 60000"}) {
    const io::Outcome outcome =
        io::run_shell(join_text("ulimit ", limit, " && exec timeout 20 ", SYNCLINE_PROGRAM, " --help"));
    EXPECT_EQ(outcome.status, 0) << limit;
    EXPECT_CONTAINS(outcome.output, "verify");
  }
}

}  // namespace
}  // namespace syncline::tools
