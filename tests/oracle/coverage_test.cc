// Each of the 152 functions has an adapter and enough cases, and the fixtures are as small as promised.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/oracle/oracle_case.h"

namespace syncline::testing {
namespace {

constexpr std::size_t kCasesOfAFunction = 5, kCasesInAll = 2000;
constexpr std::uintmax_t kBytesOfAFile = 1 << 20, kBytesInAll = 8 << 20;

TEST(OracleCoverage, NamesAreThoseOfTheBackend) {
  EXPECT_EQ(oracle_functions().size(), 152u);
  for (const std::string& name : called_functions())
    EXPECT_EQ(std::ranges::count(oracle_functions(), name), 1) << name << " is no function of functions.tsv";
}

TEST(OracleCoverage, EveryFunctionHasCases) {
  std::size_t total = 0;
  for (const std::string& name : oracle_functions()) {
    EXPECT_NE(oracle_call(name), nullptr) << "no adapter of " << name;
    const std::size_t cases = oracle_cases(name).size();
    EXPECT_GE(cases, name == "backend" ? 1 : kCasesOfAFunction) << name;  // backend() has one result
    total += cases;
  }
  EXPECT_GE(total, kCasesInAll);
}

TEST(OracleCoverage, FixturesAreSmall) {
  std::uintmax_t total = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SYNCLINE_ORACLE_DIR "/fixtures")) {
    total += entry.file_size();
    EXPECT_LT(entry.file_size(), kBytesOfAFile) << entry.path();
    EXPECT_EQ(std::ranges::count(oracle_functions(), entry.path().stem().string()), 1) << entry.path();
  }
  EXPECT_LT(total, kBytesInAll);
}

}  // namespace
}  // namespace syncline::testing
