// Runs `syncline verify`: its output, and its exit statuses 0 (whole), 1 (damaged) and 2 (unreadable, usage).
#include <gtest/gtest.h>

#include <algorithm>

#include "syncline/checkpoint/checkpoint.h"
#include "syncline/checkpoint/shards.h"
#include "syncline/error.h"
#include "tests/io/scratch.h"

namespace syncline::tools {
namespace {

using io::Outcome;
using io::Scratch;

Outcome verify(const std::string& arguments) {
  return io::run_shell(join_text(SYNCLINE_PROGRAM, " verify ", arguments));
}

// Flips a bit of the float `value`, which occurs once.
void damage(const std::string& path, float value) {
  std::string bytes = io::read_file(path);
  const std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&value), sizeof value));
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 4);
  io::write_file(path, bytes);
}

class Verify : public testing::Test {
 protected:
  Verify() {
    io::save_checkpoint(whole_, io::small_checkpoint());
    io::save_checkpoint(damaged_, io::small_checkpoint());
    damage(damaged_, 100.5f);
    damage(damaged_, 402.0f);
  }

  Scratch scratch_;
  std::string whole_ = scratch_.path("whole.h5"), damaged_ = scratch_.path("damaged.h5");
};

TEST_F(Verify, AWholeFile) {
  const Outcome outcome = verify(whole_);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, whole_ + ": fine, 6 arrays, 160 bytes\n");
}

TEST_F(Verify, AShard) {
  const std::string path = io::save_shard(scratch_.path("split.h5"), io::small_checkpoint(), {0, 1});
  const Outcome outcome = verify(path);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, path + ": fine, one shard: 6 arrays, 160 bytes\n");
}

TEST_F(Verify, NamesEveryDamagedDataset) {
  const Outcome outcome = verify(damaged_ + " " + whole_);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_CONTAINS(outcome.output, "/model_weights/dense_1/dense_1/bias:0: is damaged: its bytes have XXH3 ");
  EXPECT_CONTAINS(outcome.output, "/optimizer_weights/training/Adam/dense_1/kernel/m:0: is damaged");
  EXPECT_CONTAINS(outcome.output, damaged_ + ": damaged; problems found: 2\n");
  EXPECT_CONTAINS(outcome.output, whole_ + ": fine");
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 4);
}

TEST_F(Verify, CutAndForeignFilesAreDamaged) {
  io::write_file(whole_, io::read_file(whole_).substr(0, 1000));
  EXPECT_EQ(verify(whole_).status, 1);
  io::write_file(whole_, "");
  EXPECT_EQ(verify(whole_).status, 1);
}

TEST_F(Verify, WhatCannotBeReadIsStatusTwo) {
  const Outcome missing = verify("/nowhere/a.h5 " + damaged_);
  EXPECT_EQ(missing.status, 2);
  EXPECT_CONTAINS(missing.output, "syncline: checkpoint '/nowhere/a.h5': cannot open: No such file or directory\n");
  EXPECT_CONTAINS(missing.output, damaged_ + ": damaged");
  EXPECT_EQ(verify(scratch_.directory()).status, 2);
  EXPECT_EQ(verify("").status, 2);
  EXPECT_EQ(verify("--nonsense " + whole_).status, 2);
}

TEST_F(Verify, OutputThatCannotBeWrittenIsAFailure) { EXPECT_EQ(verify(whole_ + " > /dev/full").status, 1); }

}  // namespace
}  // namespace syncline::tools
