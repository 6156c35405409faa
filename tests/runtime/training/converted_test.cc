// A checkpoint from the middle of an epoch is complete, also after `syncline convert`: the training resumed from it
// ends with the bits, the table and the decisions of the unbroken one.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/io/scratch.h"
#include "tests/runtime/training/saved_runs.h"

namespace syncline::training {
namespace {

class Converted : public testing::TestWithParam<const char*> {};

TEST_P(Converted, GoesOnAsIfItHadNotBeen) {
  const io::Scratch scratch;
  // The loss of the second epoch is no better, so the training ends after it if the checkpoint has the first loss.
  const Way way{.epochs = 4, .patience = 1, .mode = Mode::kMax};
  const Trained unbroken = train(way, scratch.path("unbroken"));
  EXPECT_EQ(std::count(unbroken.csv.begin(), unbroken.csv.end(), '\n'), 3) << unbroken.csv;
  Way first = way, second = way;
  first.stop = second.resume = true;
  train(first, scratch.path("run"));
  const std::string saved = scratch.path("run/step-0000000009.h5"), between = scratch.path(GetParam());
  const auto convert = [](const std::string& from, const std::string& to) {
    const io::Outcome outcome = io::run_shell(SYNCLINE_PROGRAM " convert --force " + from + " " + to);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
  };
  convert(saved, between);
  std::filesystem::remove(saved);
  convert(between, saved);
  const Trained resumed = train(second, scratch.path("run"));
  EXPECT_EQ(resumed.begun_step, kStopAfter);
  EXPECT_EQ(resumed.ended, unbroken.ended);
  EXPECT_EQ(resumed.csv, unbroken.csv);
}

INSTANTIATE_TEST_SUITE_P(, Converted, testing::Values("a.h5", "a.npz", "a.safetensors"), [](const auto& row) {
  return std::filesystem::path(row.param).extension().string().substr(1);
});

}  // namespace
}  // namespace syncline::training
