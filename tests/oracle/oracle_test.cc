// Runs every case of every function in several modes. Each function and mode is one test, which lists all differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "comm/local/local_communicator.h"
#include "ops/kernels/instruction_sets.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/session.h"
#include "tests/oracle/compute.h"

namespace syncline::testing {
namespace {

class Oracle : public ::testing::TestWithParam<std::string> {};

void expect_none(const std::string& problems) {
  if (!problems.empty()) ADD_FAILURE() << problems;
}

// The first difference, or the error, of one case in the current session; empty if the case agrees.
std::string problem_of(const OracleCase& row, const Operands& operands, bool gradients) {
  try {
    return difference(row, compute(row, operands, gradients));
  } catch (const std::exception& e) {
    return e.what();
  }
}

bool any_case(const OracleCase&) { return true; }
bool has_open_batch(const OracleCase& row) { return std::ranges::count(row.open_batch, true) > 0; }
bool has_gradient(const OracleCase& row) { return !row.gradients.empty(); }

std::string problems_alone(const std::string& function, bool (*wanted)(const OracleCase&), Operand::Kind kind,
                           bool gradients) {
  std::string problems;
  for (const OracleCase& row : oracle_cases(function)) {
    if (!wanted(row)) continue;
    Session session(3);
    SessionScope scope(session);
    const std::string problem = problem_of(row, alike(row, {kind}), gradients);
    if (!problem.empty()) problems += row.name + " " + row.args.dump() + ": " + problem + "\n";
  }
  return problems;
}

TEST_P(Oracle, Value) { expect_none(problems_alone(GetParam(), any_case, Operand::kFed, false)); }

TEST_P(Oracle, OpenBatch) { expect_none(problems_alone(GetParam(), has_open_batch, Operand::kOpenBatch, false)); }

TEST_P(Oracle, Gradient) { expect_none(problems_alone(GetParam(), has_gradient, Operand::kFed, true)); }

TEST_P(Oracle, InstructionSets) {
  for (const kernels::InstructionSet& set : kernels::instruction_sets()) {
    kernels::use_instruction_set(set);
    const std::string problems = problems_alone(GetParam(), is_edge, Operand::kFed, true);
    if (!problems.empty()) ADD_FAILURE() << set.name << ":\n" << problems;
  }
  kernels::use_best_instruction_set();
}

// Runs the cases on one rank. Stops after an error that names a rank, because the ranks may be at different calls then.
void compute_on(comm::Communicator& communicator, const std::vector<OracleCase>& rows, std::string& problems) {
  static std::mutex mutex;
  for (const OracleCase& row : rows) {
    if (!row.ranks) continue;
    for (const Operands& way : ways_of(row)) {
      Session session(3);
      session.distribute(make_data_parallel(communicator));
      SessionScope scope(session);
      const std::string problem = problem_of(row, way, true);
      if (problem.empty()) continue;
      std::lock_guard lock(mutex);
      problems += join_text("rank ", communicator.rank(), " of ", communicator.size(), ", case ", row.name, " ",
                            row.args.dump(), ", operands", name_of(way), ": ", problem, "\n");
      if (problem.find("rank") != std::string::npos) return;
    }
  }
}

std::string problems_on(int size, const std::string& function) {
  const std::vector<OracleCase> rows = oracle_cases(function);
  std::string problems;
  comm::spawn_ranks(size, [&](comm::Communicator& communicator) { compute_on(communicator, rows, problems); });
  return problems;
}

TEST_P(Oracle, TwoRanks) { expect_none(problems_on(2, GetParam())); }

TEST_P(Oracle, ThreeRanks) { expect_none(problems_on(3, GetParam())); }

INSTANTIATE_TEST_SUITE_P(Functions, Oracle, ::testing::ValuesIn(oracle_functions()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace syncline::testing
