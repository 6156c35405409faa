// All uses of split values and of sums over ranks: N ranks compute what one process computes.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "syncline/backend/config.h"
#include "syncline/backend/control.h"
#include "syncline/backend/convolution.h"
#include "syncline/backend/core.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/backend/variable.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

const Array kBatch = random_doubles({7, 3}, 1);

TEST(SplitValues, AreGatheredInRowOrder) {
  expect_same_value(kBatch, [](const Expr& x) { return x; });
  expect_same_value(
      kBatch, [](const Expr& x) { return x * 2.0 + 1.0; }, 0);
  expect_same_value(random_doubles({9, 2, 4}, 2), [](const Expr& x) { return exp(x); });
}

TEST(SplitValues, MeansAndSums) {
  expect_same_value(kBatch, [](const Expr& x) { return mean(square(x)); });
  expect_same_value(kBatch, [](const Expr& x) { return mean(x, {0}); });
  expect_same_value(kBatch, [](const Expr& x) { return mean(x, {1}); });
  expect_same_value(kBatch, [](const Expr& x) { return sum(x, {0}, true); });
  expect_same_value(kBatch, [](const Expr& x) { return var(x, {0}); });
  expect_same_value(kBatch, [](const Expr& x) { return max(x, {0}); });
  expect_same_value(kBatch, [](const Expr& x) { return prod(x); });
  expect_same_value(kBatch, [](const Expr& x) { return logsumexp(x, {0}); });
}

// With one row a rank, a rank's part has the shape of a pair's row, and lies within what is gathered.
TEST(SplitValues, DistancesOfAllPairs) {
  for (const std::int64_t rows : {2, 3, 4})
    for (const std::int64_t size : {3, 2048})
      expect_same_value(random_doubles({rows, size}, 5), [](const Expr& x) {
        const Expr t = tanh(x);
        return sum(abs(expand_dims(t, 0) - expand_dims(t, 1)), {2});
      });
}

// Each rank computes the whole product, and a program that needs only the rank's rows of it.
TEST(SplitValues, OwnRowsOfAProductOfVariables) {
  for (const std::int64_t rows : {2, 7})
    expect_same_value(random_doubles({rows, 300}, 5), [rows](const Expr& x) {
      const Variable v = variable(random_doubles({rows, 20}, 6)), w = variable(random_doubles({20, 300}, 7));
      const Expr y = relu(x + dot(v, w));
      return dot(y, variable(random_doubles({300, 2}, 8))) + sum(exp(y), {1}, true);
    });
}

TEST(SplitValues, SumsOfIntegers) {
  expect_same_value(
      random_ints({11, 2}, 100, 3), [](const Expr& x) { return sum(x); }, 0);
  expect_same_value(
      random_ints({11, 2}, 100, 3), [](const Expr& x) { return sum(x, {0}); }, 0);
  expect_same_value(
      std::vector<Array>{random_ints({11, 3}, 100, 3), random_ints({11, 5}, 9, 4)}, [](const std::vector<Expr>& x) {
        return std::vector<Expr>{sum(x[0]), sum(x[1], {0}), sum(cast(greater(x[1], x[1]), DType::kInt32))};
      });
}

TEST(SplitValues, TheirShapeIsTheGlobalOne) {
  expect_same_value(kBatch, [](const Expr& x) { return shape(x); });
  expect_same_value(kBatch, [](const Expr& x) { return count(x, {0}, DType::kFloat64); });
  expect_same_value(kBatch, [](const Expr& x) { return sum(ones_like(x)); });
}

TEST(SplitValues, TransposedReversedAndJoined) {
  expect_same_value(kBatch, [](const Expr& x) { return transpose(x); });
  expect_same_value(kBatch, [](const Expr& x) { return transpose(x) * 2.0; });
  expect_same_value(kBatch, [](const Expr& x) { return transpose(transpose(x) + 1.0); });
  expect_same_value(kBatch, [](const Expr& x) { return reverse(x, {0}); });
  expect_same_value(kBatch, [](const Expr& x) { return reverse(x, {1}); });
  expect_same_value(kBatch, [](const Expr& x) { return concatenate({x, x * 2.0}, 0); });
  expect_same_value(kBatch, [](const Expr& x) { return concatenate({x, x * 2.0}, 1); });
  expect_same_value(kBatch, [](const Expr& x) { return stack({x, x * 2.0}, 0); });
  expect_same_value(kBatch, [](const Expr& x) { return repeat_elements(x, 3, 0); });
  expect_same_value(kBatch, [](const Expr& x) { return tile(x, {2, 1}); });
  expect_same_value(kBatch, [](const Expr& x) { return slice(x, {2, 0}, {3, 2}); });
}

TEST(SplitValues, AlongAMiddleAxisAreInterleaved) {
  const Array x = random_doubles({5, 2, 3}, 2);
  for (const std::vector<int>& pattern : {std::vector<int>{1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}})
    expect_same_value(x, [&](const Expr& e) { return permute_dimensions(e, pattern) * 3.0; });
  const std::string plan = plan_on_ranks(2, {x}, [](const std::vector<Expr>& e) {
    return std::vector<Expr>{permute_dimensions(e[0], {1, 0, 2}) * 3.0};
  });
  EXPECT_EQ(count_lines(plan, "interleave"), 1) << plan;
}

TEST(SplitValues, ReductionsThatMixRows) {
  expect_same_value(
      kBatch, [](const Expr& x) { return argmax(x, 0); }, 0);
  expect_same_value(
      kBatch, [](const Expr& x) { return argmax(x, 1); }, 0);
  expect_same_value(kBatch, [](const Expr& x) { return cumsum(x, 0); });
  expect_same_value(kBatch, [](const Expr& x) { return cumsum(x, 1); });
  expect_same_value(kBatch, [](const Expr& x) { return cumprod(x, 0, {.exclusive = true, .reverse = true}); });
  expect_same_value(kBatch, [](const Expr& x) { return softmax(x, 0); });
  expect_same_value(kBatch, [](const Expr& x) { return l2_normalize(x, {0}); });
  expect_same_value(kBatch, [](const Expr& x) { return any(greater(x, x * 0.0 + 0.9)); });
}

TEST(SplitValues, ExtremesAreReducedOnEachRankFirst) {
  Array special = random_doubles({5, 3}, 4);
  special.data<double>()[4] = std::numeric_limits<double>::quiet_NaN();
  special.data<double>()[8] = -std::numeric_limits<double>::infinity();
  const auto extremes = [](const Expr& x) {
    const Expr largest = max(x, {0}, true), positive = greater(x, zeros_like(x));
    return std::vector<Expr>{largest + x,
                             min(x, {0}),
                             max(x),
                             min(x, {0, 1}),
                             any(positive, {0}),
                             all(positive, {0}),
                             gradients(sum(largest), {x})[0]};
  };
  // Of one and two rows: some ranks have none.
  for (const Array& x : {kBatch, special, random_doubles({1, 3}, 5), random_doubles({2, 3}, 6)})
    expect_same_value(std::vector{x}, [&](const std::vector<Expr>& e) { return extremes(e[0]); });
  for (const Array& x : {random_ints({11, 2}, 100, 3), random_ints({1, 2}, 100, 3)})
    expect_same_value(std::vector{x}, [](const std::vector<Expr>& e) {
      return std::vector<Expr>{max(e[0], {0}), min(e[0]), max(cast(e[0], DType::kFloat16), {0}),
                               min(cast(e[0], DType::kUint8))};
    });
  const std::string plan =
      plan_on_ranks(3, {kBatch}, [&](const std::vector<Expr>& e) { return std::vector{sum(extremes(e[0])[0])}; });
  EXPECT_EQ(count_lines(plan, "all_gather"), 0) << plan;
  EXPECT_EQ(count_lines(plan, "a maximum over ranks"), 1) << plan;
}

// As an iteration's output, as the next state, and in a fold; the loop's own values are whole.
TEST(SplitValues, ExtremesWithinLoops) {
  const auto loops = [](const Expr& x) {
    const auto cell = [](const Expr& e, const std::vector<Expr>& s) {
      const Expr top = max(e, {0}, true);
      return std::pair<Expr, std::vector<Expr>>{top + min(e * s[0]), {s[0] * 0.5 + top}};
    };
    const RnnResult rows = rnn(cell, x, {fill({1, 3}, 0.5, DType::kFloat64)}, {});
    const Expr steps = permute_dimensions(x, {1, 0, 2});
    const Expr mapped = map_fn([](const Expr& e) { return max(e, {0}); }, steps);
    const Expr folded = foldl([](const Expr& s, const Expr& e) { return s * 0.5 + max(e * s, {0}, true); }, steps);
    std::vector<Expr> values{rows.outputs, rows.last_output, mapped, folded};
    values.push_back(gradients(sum(rows.outputs) + sum(mapped * mapped) + sum(folded * folded), {x})[0]);
    return values;
  };
  for (const Array& x : {random_doubles({7, 4, 3}, 7), random_doubles({1, 4, 3}, 8)})
    expect_same_value(std::vector{x}, [&](const std::vector<Expr>& e) { return loops(e[0]); });
}

TEST(SplitValues, Reshaped) {
  const Array x = random_doubles({6, 4, 2}, 2);
  for (const Shape& to : {Shape{6, 8}, {24, 2}, {48}, {2, 3, 8}, {3, 16}, {4, 12}, {1, 6, 8}, {8, 6}, {16, 3}})
    expect_same_value(x, [&](const Expr& e) { return reshape(e, to) * 2.0; });
  expect_same_value(x, [](const Expr& e) { return batch_flatten(e); });
  expect_same_value(x, [](const Expr& e) { return sum(reshape(e, {8, 6}), {0}); });
  expect_same_value(x, [](const Expr& e) { return sum(reshape(e, {24, 2}), {0}); });
  expect_same_value(x, [](const Expr& e) { return reverse(reshape(e, {24, 2}), {1}); });
}

TEST(SplitValues, Products) {
  const std::vector<Array> two{kBatch, random_doubles({7, 4}, 2)};
  auto one = [&](auto build) {
    expect_same_value(two, [&](const std::vector<Expr>& x) { return std::vector<Expr>{build(x[0], x[1])}; });
  };
  one([](const Expr& x, const Expr& y) { return dot(transpose(x), y); });
  one([](const Expr& x, const Expr& y) { return dot(transpose(x), y) * 2.0 + 1.0; });
  one([](const Expr& x, const Expr& y) { return dot(transpose(y), dot(x, dot(transpose(x), y))); });
  one([](const Expr& x, const Expr&) { return dot(x, transpose(x)); });
  one([](const Expr& x, const Expr&) { return dot(x, constant(random_doubles({3, 2}, 9))); });
}

TEST(SplitValues, MeetReplicatedOnes) {
  const Array column = random_doubles({7, 1}, 3);
  expect_same_value(kBatch, [&](const Expr& x) { return x * constant(column); });
  expect_same_value(kBatch, [&](const Expr& x) { return transpose(x) + transpose(constant(column)); });
  expect_same_value(kBatch, [&](const Expr& x) { return select(greater(x, constant(column)), x, constant(kBatch)); });
  expect_same_value(kBatch, [&](const Expr& x) { return x + constant(random_doubles({3}, 1)); });
  expect_same_value(kBatch, [&](const Expr& x) { return x * variable(kBatch).expr(); });
}

TEST(SplitValues, MeetEachOtherAlongDifferentAxes) {
  const Array square_batch = random_doubles({6, 6}, 3);
  expect_same_value(square_batch, [](const Expr& x) { return x + transpose(x); });
  expect_same_value(square_batch, [](const Expr& x) { return dot(x, x); });
  expect_same_value(square_batch, [](const Expr& x) { return sum(x * transpose(x)); });
}

TEST(SumsOverRanks, InEveryUse) {
  const Array weights = random_doubles({3}, 8);
  auto with = [&](auto use) { expect_same_value(kBatch, [&](const Expr& x) { return use(sum(x, {0}), x); }); };
  with([&](const Expr& s, const Expr&) { return s * constant(weights); });
  with([&](const Expr& s, const Expr&) { return s + s * 3.0; });
  with([&](const Expr& s, const Expr& x) { return s + sum(square(x), {0}); });
  with([&](const Expr& s, const Expr&) { return s + constant(weights); });
  with([&](const Expr& s, const Expr&) { return constant(weights) - s; });
  with([&](const Expr& s, const Expr&) { return sqrt(abs(s)); });
  with([&](const Expr& s, const Expr& x) { return sqrt(sum(square(x), {0})) + s; });
  with([&](const Expr& s, const Expr&) { return s * s; });
  with([&](const Expr& s, const Expr&) { return s / 3.0; });
  with([&](const Expr& s, const Expr&) { return 3.0 / s; });
  with([&](const Expr& s, const Expr& x) { return x - s; });
  with([&](const Expr& s, const Expr& x) { return x * s; });
  with([&](const Expr& s, const Expr&) { return reshape(s, {3, 1}); });
  with([&](const Expr& s, const Expr&) { return reverse(s, {0}); });
  with([&](const Expr& s, const Expr&) { return concatenate({s, constant(weights)}, 0); });
  with([&](const Expr& s, const Expr&) { return sum(s); });
  with([&](const Expr& s, const Expr&) { return max(s); });
  with([&](const Expr& s, const Expr&) { return relu(s); });
  with([&](const Expr& s, const Expr&) { return s + 1.0; });
  with([&](const Expr& s, const Expr&) { return s - s; });
  with([&](const Expr& s, const Expr&) { return maximum(s, constant(weights)); });
}

TEST(SumsOverRanks, LinearUseIsReducedOnce) {
  const std::string plan = plan_on_ranks(2, {kBatch}, [](const std::vector<Expr>& x) {
    return std::vector<Expr>{sum(x[0], {0}) * 2.0 + sum(square(x[0]), {0}) / 3.0};
  });
  EXPECT_EQ(count_lines(plan, "all_reduce"), 1) << plan;
}

TEST(SplitValues, BatchStatisticsAreThoseOfTheWholeBatch) {
  const std::vector<Array> feeds{random_doubles({7, 2, 3}, 1)};
  expect_same_value(feeds, [](const std::vector<Expr>& x) {
    const Expr gamma = variable(doubles({1, 2, 3})), beta = variable(doubles({4, 5, 6}));
    const NormalizedBatch n = normalize_batch_in_training(x[0], gamma, beta, {0, 1});
    const auto g = gradients(sum(n.normalized * sin(x[0])), {x[0], gamma, beta});
    return std::vector<Expr>{n.normalized, n.mean, n.variance, g[0], g[1], g[2]};
  });
}

TEST(SplitValues, Gradients) {
  const std::vector<Array> feeds{kBatch, random_doubles({7, 2}, 2)};
  expect_same_value(feeds, [](const std::vector<Expr>& x) {
    const Variable w = variable(random_doubles({3, 2}, 3)), b = variable(random_doubles({2}, 4));
    const Expr loss = mean(square(tanh(bias_add(dot(x[0], w), b)) - x[1]));
    const auto g = gradients(loss, {w, b, x[0]});
    const auto second = gradients(sum(square(g[0])), {w, x[0]});
    return std::vector<Expr>{loss, g[0], g[1], g[2], second[0], second[1]};
  });
}

TEST(SplitValues, RandomNumbersDoNotDependOnTheRanks) {
  expect_same_value(
      kBatch, [](const Expr& x) { return dropout(x, 0.5); }, 0);
  expect_same_value(
      kBatch, [](const Expr& x) { return transpose(dropout(transpose(x), 0.5)); }, 0);
  expect_same_value(kBatch, [](const Expr& x) { return x + random_normal({7, 3}, {.dtype = DType::kFloat64}); });
  expect_same_value(
      kBatch,
      [](const Expr& x) {
        return dropout(x, 0.5, Shape{kUnknown, 1});
      },
      0);
}

TEST(SplitValues, Rows) {
  const std::vector<Array> feeds{random_ints({9}, 7, 1), random_doubles({9, 3}, 2)};
  expect_same_value(feeds, [](const std::vector<Expr>& x) {
    const Variable table = variable(random_doubles({7, 3}, 3));
    const Expr rows = gather(table, x[0]);
    return std::vector<Expr>{rows, gradients(sum(rows * x[1]), {table})[0], gather(x[1], x[0])};
  });
}

}  // namespace
}  // namespace syncline::testing
