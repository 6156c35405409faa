// If ranks build different functions, or call them in another order, every rank gets an error before any sum.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "tests/examples/job.h"

namespace syncline::examples {
namespace {

struct Case {
  const char *name, *difference;
  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }
};

class DifferentGraphs : public testing::TestWithParam<Case> {};

TEST_P(DifferentGraphs, EveryRankIsTold) {
  const io::Scratch scratch;
  const Ended ended =
      run_job(scratch, {.program = SYNCLINE_DIFFERENT_GRAPHS, .ranks = 3, .arguments = GetParam().name, .seconds = 20});
  EXPECT_NE(ended.code, 0) << ended.trace;
  EXPECT_LT(ended.seconds, 10) << ended.trace;
  std::set<std::string> ranks, messages;
  const std::regex line(R"(rank (\d) was told: (.+))");
  for (std::sregex_iterator i(ended.out.begin(), ended.out.end(), line), end; i != end; ++i) {
    ranks.insert((*i)[1]);
    messages.insert((*i)[2]);
  }
  EXPECT_EQ(ranks, (std::set<std::string>{"0", "1", "2"})) << ended.trace;
  EXPECT_EQ(messages.size(), 1u) << ended.trace;
  for (const std::string& message : messages) EXPECT_CONTAINS(message, GetParam().difference);
  for (const auto& code : ended.exit) EXPECT_NE(code.value_or(1), 0) << ended.trace;
}

constexpr const char* kFunctions = "ranks 0 and 2 built different functions; the first difference (line ";
INSTANTIATE_TEST_SUITE_P(Ranks, DifferentGraphs,
                         testing::Values(Case{"shape", kFunctions}, Case{"operations", kFunctions},
                                         Case{"updates", kFunctions}, Case{"missing", kFunctions},
                                         Case{"name", kFunctions}, Case{"feeds", "rank"}, Case{"calls", "plan "}),
                         testing::PrintToStringParamName());

TEST(EqualGraphs, RunToTheEnd) {
  const io::Scratch scratch;
  expect_success(
      run_job(scratch, {.program = SYNCLINE_DIFFERENT_GRAPHS, .ranks = 3, .arguments = "none", .seconds = 20}));
}

}  // namespace
}  // namespace syncline::examples
