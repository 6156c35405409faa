#include "ops/kernels/instruction_sets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "syncline/error.h"

namespace syncline::kernels {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const InstructionSet& set : instruction_sets()) found.push_back(set.name);
  return found;
}

class InstructionSets : public testing::Test {
 protected:
  ~InstructionSets() override { limit_instruction_sets(0); }
  const std::vector<std::string> all_ = names();
};

TEST_F(InstructionSets, BaselineIsTheSmallest) {
  limit_instruction_sets(instruction_sets_of("baseline"));
  EXPECT_EQ(names(), std::vector<std::string>{all_.back()});
}

TEST_F(InstructionSets, Avx2LeavesOutWiderOnes) {
  const auto avx2 = std::find(all_.begin(), all_.end(), "AVX2");
  if (avx2 == all_.end()) GTEST_SKIP() << "this processor has no AVX2";
  limit_instruction_sets(instruction_sets_of("avx2"));
  EXPECT_EQ(names(), std::vector<std::string>(avx2, all_.end()));
}

// A limit stands for a processor without AVX2.
TEST_F(InstructionSets, Avx2IsTheWidestSetBelowWhereAvx2IsMissing) {
  limit_instruction_sets(instruction_sets_of("baseline"));
  EXPECT_EQ(instruction_sets_of("avx2"), instruction_sets_of("baseline"));
}

TEST_F(InstructionSets, BestAndCommonLeaveOutNothing) {
  for (const char* name : {"best", "common"}) {
    limit_instruction_sets(instruction_sets_of(name));
    EXPECT_EQ(names(), all_);
  }
  EXPECT_THROW(instruction_sets_of("mmx"), ValueError);
}

TEST_F(InstructionSets, ATestsChoiceEndsAtTheLimit) {
  limit_instruction_sets(instruction_sets_of("baseline"));
  use_instruction_set(instruction_sets().front());
  use_best_instruction_set();
  EXPECT_EQ(names(), std::vector<std::string>{all_.back()});
}

}  // namespace
}  // namespace syncline::kernels
