// Plain lines of progress. tests/examples/output_test.cc tests the bar on a terminal.
#include "syncline/training/callbacks/progress_bar.h"

#include <gtest/gtest.h>

#include <regex>

#include "syncline/session.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/training/small_fit.h"

namespace syncline::training {
namespace {

void expect_matches(const std::string& output, const std::string& pattern) {
  EXPECT_TRUE(std::regex_match(output, std::regex(pattern))) << output;
}

TEST(ProgressBar, ALineAnEpoch) {
  Session session(3);
  const SessionScope scope(session);
  ProgressBar bar(nullptr);
  SmallFit small(2, {&bar});
  ::testing::internal::CaptureStdout();
  small.fit->run();
  const std::string rest = R"( step 6/6  loss [\d.]+  error [\d.]+  val_loss [\d.]+  val_error [\d.]+  \d+ samples/s  )"
                           R"(took 0:\d\d\n)";
  expect_matches(::testing::internal::GetCapturedStdout(), "epoch 1/2" + rest + "epoch 2/2" + rest);
}

TEST(ProgressBar, AnEpochThatIsBrokenOffHasItsLine) {
  for (const bool fails : {false, true}) {
    Session session(3);
    const SessionScope scope(session);
    Witness witness;
    (fails ? witness.throw_at : witness.pause_at) = "step end 3";
    ProgressBar bar(nullptr);
    SmallFit small(2, {&bar, &witness});
    ::testing::internal::CaptureStdout();
    if (fails) EXPECT_THROW(small.fit->run(), std::runtime_error);
    else small.fit->run();
    expect_matches(::testing::internal::GetCapturedStdout(),
                   R"(epoch 1/2 step 3/6  loss [\d.]+  error [\d.]+  \d+ samples/s  took 0:\d\d\n)");
  }
}

TEST(ProgressBar, OnlyTheFirstRankPrints) {
  ::testing::internal::CaptureStdout();
  syncline::testing::on_ranks(3, [](comm::Communicator& communicator) {
    ProgressBar bar(&communicator);
    SmallFit small(1, {&bar});
    small.fit->run();
  });
  expect_matches(::testing::internal::GetCapturedStdout(), R"(epoch 1/1 step 6/6.*\n)");
}

}  // namespace
}  // namespace syncline::training
