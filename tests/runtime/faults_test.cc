// The syntax of SYNCLINE_FAULT. tests/mpi/faults injects the faults.
#include "runtime/placement/faults.h"

#include <gtest/gtest.h>

#include "syncline/error.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

TEST(Faults, AreRead) {
  const std::vector<Fault> faults = parse_faults("1:30:kill,0:2:flip:dense_1/kernel:0:7:31,2:0:swap:3:1");
  ASSERT_EQ(faults.size(), 3u);
  EXPECT_EQ(faults[0].kind, Fault::kKill);
  EXPECT_EQ(faults[0].rank, 1);
  EXPECT_EQ(faults[0].step, 30u);
  EXPECT_EQ(faults[1].kind, Fault::kFlip);
  EXPECT_EQ(faults[1].variable, "dense_1/kernel:0");
  EXPECT_EQ(faults[1].numbers, (std::vector<std::uint64_t>{7, 31}));
  EXPECT_EQ(faults[2].numbers, (std::vector<std::uint64_t>{3, 1}));
  EXPECT_EQ(faults[2].text, "2:0:swap:3:1");
}

TEST(Faults, WhatIsWrongIsNamed) {
  const auto refusal = [](const char* text) { return message_of<ValueError>([&] { parse_faults(text); }); };
  const auto expect = [&](const char* text, const char* part) {
    EXPECT_NE(refusal(text).find(part), std::string::npos) << refusal(text);
  };
  expect("kill", "'kill' is too short; give RANK:STEP:WHAT");
  expect("1:2:melt", "unknown fault 'melt' in '1:2:melt'; the known faults are kill, exit0");
  expect("one:2:kill", "the rank 'one' in 'one:2:kill' is not a number");
  expect("1::kill", "the step '' in '1::kill' is not a number");
  expect("1:2:kill:3", "has 1 arguments; give RANK:STEP:kill");
  expect("1:2:sleep", "has 0 arguments; give RANK:STEP:sleep:MILLISECONDS");
  expect("1:2:flip:kernel:3", "has 2 arguments; give RANK:STEP:flip:VARIABLE:ELEMENT:BIT");
  expect("1:2:kill,", "'' is too short");
}

}  // namespace
}  // namespace syncline::testing
