// Small sums over ranks that a step needs at once: which of them become one transfer, and what runs meanwhile.
#include <gtest/gtest.h>

#include "syncline/backend/convolution.h"
#include "syncline/backend/function.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/session.h"
#include "syncline/training/optimizers.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

constexpr std::int64_t kWidth = 16;

Array floats(Shape shape, std::uint64_t seed) { return random_doubles(std::move(shape), seed).cast(DType::kFloat32); }

// dot, normalization, relu. Adds its weights to `variables`.
Expr dense(const Expr& x, std::vector<Variable>& variables) {
  const std::uint64_t seed = variables.size();
  const Variable kernel = variable(floats({kWidth, kWidth}, seed)), gamma = variable(floats({kWidth}, seed + 1)),
                 beta = variable(floats({kWidth}, seed + 2));
  for (const Variable& v : {kernel, gamma, beta}) variables.push_back(v);
  return relu(normalize_batch_in_training(dot(x, kernel), gamma, beta, {0}).normalized);
}

using Network = std::function<Expr(const Expr& x, std::vector<Variable>& variables)>;

struct Step {
  std::vector<Variable> variables;
  std::unique_ptr<Function> run;

  explicit Step(const Network& network) {
    const Expr x = placeholder({.shape = {kUnknown, kWidth}});
    const Expr loss = mean(square(network(x, variables)));
    run = std::make_unique<Function>(std::vector<Expr>{x}, std::vector<Expr>{loss}, sgd(loss, variables).updates);
  }
};

std::string plan_of(const Network& network) {
  std::string plan;
  on_ranks(2, [&](comm::Communicator& communicator) {
    const std::string own = Step(network).run->describe(std::vector<Array>{floats({24, kWidth}, 9)});
    if (communicator.rank() == 0) plan = own;
  });
  return plan;
}

int count_sums_needed_at_once(const std::string& plan) { return count_lines(plan, "needed at once"); }

void expect_equal_training(const Network& network) {
  expect_same_on_ranks(
      [&] {
        Step step(network);
        std::vector<Array> results;
        for (std::uint64_t i = 0; i < 3; ++i) results.push_back((*step.run)({floats({23, kWidth}, i)})[0]);
        for (const Variable& v : step.variables) results.push_back(get_value(v));
        return results;
      },
      1e-5);
}

Expr chain(const Expr& x, std::vector<Variable>& variables) {
  return dense(dense(dense(x, variables), variables), variables);
}

Expr branches(const Expr& x, std::vector<Variable>& variables) {
  const Expr first = dense(x, variables);
  return dense(first, variables) + dense(dense(first, variables), variables);
}

TEST(CoalescedSums, ANormalizationHasOneTransferEachWay) {
  const std::string plan = plan_of(chain);
  EXPECT_EQ(count_lines(plan, "2 sums over ranks that are needed at once"), 3 + 3) << plan;
  EXPECT_EQ(count_sums_needed_at_once(plan), 3 + 3) << plan;
  expect_equal_training(chain);
}

TEST(CoalescedSums, ParallelBranchesShareTransfers) {
  const std::string plan = plan_of(branches);
  EXPECT_EQ(count_lines(plan, "4 sums over ranks that are needed at once"), 1 + 1) << plan;
  EXPECT_EQ(count_sums_needed_at_once(plan), 3 + 3) << plan;
  expect_equal_training(branches);
}

// The gradient of a layer's weights is computed while the sums of the normalization before it are under way.
TEST(CoalescedSums, WorkThatCanWaitRunsMeanwhile) {
  const std::vector<std::string> steps = lines(plan_of(chain));
  int meanwhile = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].find("needed at once") == std::string::npos) continue;
    for (++i; i < steps.size() && steps[i].find("wait") == std::string::npos; ++i)
      if (steps[i].find("dot_kernel_grad") != std::string::npos) ++meanwhile;
  }
  EXPECT_EQ(meanwhile, 2);
}

// A gradient is computed soon after the values that it needs, however far the normalization before it is.
TEST(CoalescedSums, OnlyALittleWorkWaitsForASum) {
  const auto far = [](const Expr& x, std::vector<Variable>& variables) {
    Expr y = dense(x, variables);
    for (std::uint64_t i = 0; i < 10; ++i) {
      variables.push_back(variable(floats({kWidth, kWidth}, i)));
      y = relu(dot(y, variables.back()));
    }
    return y;
  };
  const std::vector<std::string> steps = lines(plan_of(far));
  int before = 0, after = 0;
  bool started = false;
  for (const std::string& step : steps) {
    if (step.find("dot_kernel_grad") != std::string::npos) ++(started ? after : before);
    if (before > 0 && step.find("needed at once") != std::string::npos) started = true;
  }
  EXPECT_GE(before, 8);
  EXPECT_EQ(before + after, 11);
}

// Ranks with different numbers of rows have the same transfers in the same order, also where the sizes of one rank's
// rows lie on the two sides of a border.
TEST(CoalescedSums, UnevenRowsGiveEqualPlans) {
  for (const std::int64_t rows : {193, 511, 513, 1023})
    on_ranks(
        2,
        [&](comm::Communicator&) {
          std::vector<Variable> variables;
          const Expr x = placeholder({.shape = {kUnknown, kWidth}});
          Expr y = dense(x, variables);
          for (const std::int64_t width : {64, 64, 1000}) {
            const Variable kernel = variable(floats({y.shape()[1], width}, 1)), bias = variable(floats({width}, 2));
            for (const Variable& v : {kernel, bias}) variables.push_back(v);
            y = relu(bias_add(dot(y, kernel), bias));
          }
          const Expr loss = mean(square(y));
          EXPECT_NO_THROW(Function({x}, {loss}, sgd(loss, variables).updates)({floats({rows, kWidth}, 9)}));
        },
        {.first_bucket = 16 << 10});
}

// The sums of squares of parts are not the parts of a sum.
TEST(CoalescedSums, MomentsOfAPartialValueAreThoseOfTheWholeOne) {
  const Array feed = floats({24, kWidth}, 4);
  expect_same_on_ranks(
      [&] {
        const Expr h = placeholder({.shape = {kUnknown, kWidth}});
        const NormalizedBatch batch = normalize_batch_in_training(dot(transpose(h), h), {}, {}, {0});
        return Function({h}, {batch.variance})({feed});
      },
      1e-5);
}

}  // namespace
}  // namespace syncline::testing
