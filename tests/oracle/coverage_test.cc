// Checks that each of the 152 functions has an adapter and enough cases, with the batches, values and gradients that
// README.md requires, and that the fixtures are small.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/oracle/oracle_case.h"

namespace syncline::testing {
namespace {

constexpr std::size_t kCasesOfAFunction = 5, kCasesInAll = 2000;
constexpr std::uintmax_t kBytesOfAFile = 1 << 20, kBytesInAll = 8 << 20;

bool has_axes(const std::optional<Array>& input) { return input && input->shape().ndim() > 0; }

bool has_rows(const OracleCase& row, std::size_t operand, std::int64_t rows) {
  return operand < row.inputs.size() && has_axes(row.inputs[operand]) && row.inputs[operand]->shape()[0] == rows;
}

bool has_gradient(const OracleCase& row) { return !row.gradients.empty(); }

bool has_gradient_of(const OracleCase& row, DType dtype) {
  return std::ranges::any_of(row.gradients, [&](const auto& slope) { return slope && slope->dtype() == dtype; });
}

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

TEST(OracleCoverage, BatchesWithoutARowAndOfOne) {
  for (const std::string& name : oracle_functions()) {
    const std::vector<OracleCase> cases = oracle_cases(name);
    const bool differentiable = std::ranges::any_of(cases, has_gradient);
    const std::optional<std::size_t> operand = oracle_batch(name);
    for (const OracleCase& row : cases)
      EXPECT_TRUE(operand || std::ranges::none_of(row.inputs, has_axes))
          << name << " has operands: functions.tsv must say which of them holds the batch";
    for (const std::int64_t rows : {0, 1})
      EXPECT_TRUE(!operand || std::ranges::any_of(cases,
                                                  [&](const OracleCase& row) {
                                                    return has_rows(row, *operand, rows) &&
                                                           (has_gradient(row) || !differentiable);
                                                  }))
          << name << " has no case of " << rows << " rows" << (differentiable ? " with a gradient" : "")
          << "; add it to generate/batches.py";
  }
}

TEST(OracleCoverage, EdgesOfWhatGoesElementByElement) {
  for (const std::string& name : oracle_functions()) {
    if (oracle_group(name) != "elementwise" && oracle_group(name) != "activations and losses") continue;
    EXPECT_TRUE(std::ranges::any_of(oracle_cases(name), is_edge)) << name << "; add it to generate/edges.py";
  }
}

TEST(OracleCoverage, GradientsOfFloat32WhereOfFloat64) {
  for (const std::string& name : oracle_functions()) {
    const std::vector<OracleCase> cases = oracle_cases(name);
    const auto any_of = [&](DType dtype) {
      return std::ranges::any_of(cases, [&](const OracleCase& row) { return has_gradient_of(row, dtype); });
    };
    EXPECT_TRUE(any_of(DType::kFloat32) || !any_of(DType::kFloat64)) << name;
  }
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
