// The rows of each rank under global feeds (every rank feeds the whole batch) and local feeds (each feeds its rows).
#include <gtest/gtest.h>

#include <algorithm>

#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/distributed/agree_steps.h"
#include "syncline/session.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

Expr input(Shape shape, std::string name = "x") {
  return placeholder({.shape = std::move(shape), .dtype = DType::kFloat64, .name = std::move(name)});
}

TEST(GlobalFeeds, EveryBatchSizeOnOneFunction) {
  expect_same_on_ranks([] {
    const Expr x = input({kUnknown, 3});
    const Variable w = variable(random_doubles({3, 2}, 1));
    Function f({x}, {dot(x, w), mean(x), gradients(mean(square(dot(x, w))), {w})[0]});
    std::vector<Array> results;
    for (const std::int64_t rows : {8, 1, 3, 2, 5, 1, 8, 4})
      for (Array& a : f({random_doubles({rows, 3}, static_cast<std::uint64_t>(rows))})) results.push_back(a);
    return results;
  });
}

TEST(GlobalFeeds, NoRows) {
  expect_same_on_ranks([] {
    const Expr x = input({kUnknown, 3});
    return Function({x}, {x * 2.0, sum(x), sum(x, {0}), shape(x)})({Array(DType::kFloat64, {0, 3})});
  });
}

TEST(GlobalFeeds, AnOddOneOutIsReplicated) {
  expect_same_on_ranks([] {
    const Expr x = input({kUnknown, 3}), y = input({kUnknown, 3}, "y"), weights = input({3}, "weights");
    const Expr factor = input({}, "factor");
    return Function({weights, x, y, factor}, {(x + y) * weights * factor, sum(weights), mean(x * weights)})(
        {random_doubles({3}, 1), random_doubles({8, 3}, 2), random_doubles({8, 3}, 3), Array::scalar(0.5)});
  });
}

TEST(GlobalFeeds, AnOddOneOutOfTwoAndSizesThatCoincide) {
  expect_same_on_ranks([] {
    const Expr x = input({kUnknown, 4}), table = input({4, 4}, "table");
    Function f({x, table}, {dot(x, table), sum(table, {0})});
    std::vector<Array> results = f({random_doubles({6, 4}, 1), random_doubles({4, 4}, 2)});
    for (Array& a : f({random_doubles({4, 4}, 3), random_doubles({4, 4}, 2)})) results.push_back(a);
    return results;
  });
}

// The rows of `rank`: the batch divided in rank order, with counts[r] rows for rank r.
Array own_rows(const Array& batch, const std::vector<std::int64_t>& counts, int rank) {
  std::int64_t begin = 0;
  for (int r = 0; r < rank; ++r) begin += counts[static_cast<std::size_t>(r)];
  return batch.rows(begin, begin + counts[static_cast<std::size_t>(rank)]).copy();
}

std::vector<Array> train_on(const std::function<Array(const Array&)>& part) {
  const Expr x = input({kUnknown, 3}), y = input({kUnknown, 2}, "y"), factors = input({5}, "factors");
  const Variable w = variable(random_doubles({3, 2}, 1));
  const Expr loss = mean(square(sin(dot(x, w)) - y)) + sum(factors) * 0.01;
  Function f({x, y, factors}, {loss, dot(x, w), sum(x, {0}), reverse(x, {0}), shape(x)},
             {update_sub(w, gradients(loss, {w})[0] * 0.1)});
  std::vector<Array> results;
  for (std::uint64_t step = 0; step < 3; ++step)
    for (Array& a :
         f({part(random_doubles({9, 3}, step)), part(random_doubles({9, 2}, 10 + step)), random_doubles({5}, 20)}))
      results.push_back(a);
  results.push_back(get_value(w));
  return results;
}

void expect_local_rows(const std::vector<std::int64_t>& counts) {
  std::vector<Array> wanted;
  on_one_process([&] { wanted = train_on([](const Array& batch) { return batch; }); });
  on_ranks(static_cast<int>(counts.size()),
           [&](comm::Communicator& communicator) {
             const auto got =
                 train_on([&](const Array& batch) { return own_rows(batch, counts, communicator.rank()); });
             ASSERT_EQ(got.size(), wanted.size());
             for (std::size_t i = 0; i < got.size(); ++i)
               expect_near(got[i], wanted[i], 1e-12,
                           join_text("rank ", communicator.rank(), " of ", counts.size(), " output ", i));
           },
           {.local_feeds = true});
}

TEST(LocalFeeds, AreTheRanksRowsOneAfterTheOther) {
  expect_local_rows({9});
  expect_local_rows({4, 5});
  expect_local_rows({1, 8});
  expect_local_rows({3, 2, 4});
  expect_local_rows({2, 2, 2, 3});
}

TEST(LocalFeeds, SomeRanksHaveNoRows) {
  expect_local_rows({0, 9});
  expect_local_rows({9, 0});
  expect_local_rows({4, 0, 5});
  expect_local_rows({0, 0, 0, 9});
}

TEST(LocalFeeds, ARanksRowsThatCoincideWithAnOddOne) {
  expect_local_rows({5, 4});
  expect_local_rows({4, 5, 0});
}

// Data sets of different sizes: a rank without further data feeds no rows until all ranks are done.
TEST(LocalFeeds, AnEpochOfRanksWithDifferentData) {
  const auto train = [](const std::function<Array(std::int64_t)>& batch, std::int64_t steps) {
    const Expr x = input({kUnknown, 3});
    const Variable w = variable(random_doubles({3, 2}, 1));
    const Expr loss = mean(square(tanh(dot(x, w)) - 0.5));
    Function f({x}, {loss}, {update_sub(w, gradients(loss, {w})[0] * 0.3)});
    std::vector<Array> results;
    for (std::int64_t step = 0; step < steps; ++step) results.push_back(f({batch(step)})[0]);
    results.push_back(get_value(w));
    return results;
  };
  for (const std::vector<std::int64_t>& batches : {std::vector<std::int64_t>{2, 5}, {4, 0, 1}}) {
    const auto ranks = static_cast<std::int64_t>(batches.size());
    const auto part = [&](std::int64_t rank, std::int64_t step) {  // rank r has r + 2 rows a batch
      const bool has = step < batches[static_cast<std::size_t>(rank)];
      return random_doubles({has ? rank + 2 : 0, 3}, static_cast<std::uint64_t>(10 * rank + step));
    };
    const auto joined = [&](std::int64_t step) {
      std::vector<double> rows;
      for (std::int64_t r = 0; r < ranks; ++r) {
        const std::vector<double> own = numbers(part(r, step));
        rows.insert(rows.end(), own.begin(), own.end());
      }
      const auto n = static_cast<std::int64_t>(rows.size()) / 3;
      return doubles(Shape{n, 3}, std::move(rows));
    };
    const std::int64_t least = *std::min_element(batches.begin(), batches.end()),
                       most = *std::max_element(batches.begin(), batches.end());
    std::vector<Array> wanted;
    on_one_process([&] { wanted = train(joined, most); });
    on_ranks(static_cast<int>(ranks),
             [&](comm::Communicator& communicator) {
               const std::int64_t own = batches[static_cast<std::size_t>(communicator.rank())];
               EXPECT_EQ(comm::agree_steps(communicator, own, comm::Reduce::kMin), least);
               const std::int64_t steps = comm::agree_steps(communicator, own, comm::Reduce::kMax);
               ASSERT_EQ(steps, most);
               const auto got = train([&](std::int64_t step) { return part(communicator.rank(), step); }, steps);
               for (std::size_t i = 0; i < got.size(); ++i) expect_near(got[i], wanted[i], 1e-12);
             },
             {.local_feeds = true});
  }
}

TEST(LocalFeeds, StepsAreRefusedIfTheyCannotBeRight) {
  on_ranks(1, [](comm::Communicator& communicator) {
    EXPECT_EQ(message_of<ValueError>([&] { comm::agree_steps(communicator, -1, comm::Reduce::kMin); }),
              "agree_steps: the number of steps is -1; give 0 or more");
    message_of<ValueError>([&] { comm::agree_steps(communicator, 1, comm::Reduce::kSum); });
  });
}

TEST(LocalFeeds, NoRankHasRows) {
  on_ranks(3,
           [](comm::Communicator&) {
             const Expr x = input({kUnknown, 2});
             const auto out = Function({x}, {x * 2.0, sum(x)})({Array(DType::kFloat64, {0, 2})});
             EXPECT_EQ(out[0].shape(), (Shape{0, 2}));
             EXPECT_EQ(out[1].item(), 0);
           },
           {.local_feeds = true});
}

TEST(LocalFeeds, SharesThatChangeFromStepToStep) {
  on_ranks(2,
           [](comm::Communicator& communicator) {
             const Expr x = input({kUnknown, 1});
             Function f({x}, {x, sum(x)});
             for (const std::int64_t first : {1, 3, 0, 1, 4, 3}) {
               const Array batch = random_doubles({4, 1}, static_cast<std::uint64_t>(first));
               const auto out = f({own_rows(batch, {first, 4 - first}, communicator.rank())});
               expect_near(out[0], batch, 0);
               double total = 0;
               for (const double v : numbers(batch)) total += v;
               EXPECT_NEAR(out[1].item(), total, 1e-14);
             }
           },
           {.local_feeds = true});
}

// One rank's feeds fit a plan that it has, the other rank's do not. Both must make a new plan.
TEST(LocalFeeds, APlanIsUsedAgainByAllRanksOrNone) {
  on_ranks(2,
           [](comm::Communicator& communicator) {
             const Expr x = input({kUnknown, 2}), c = input({kUnknown, 2}, "c");
             Function f({x, c}, {sum(x), sum(c, {0})});
             const auto ones = [](std::int64_t rows) {
               return doubles(Shape{rows, 2}, std::vector<double>(2 * rows, 1));
             };
             const auto first = communicator.rank() == 0;
             // x has 4 rows on rank 0 and 2 on rank 1. c is split if it has as many on each rank, otherwise replicated.
             expect_values(f({ones(first ? 4 : 2), ones(first ? 4 : 2)})[1], {6, 6});
             expect_values(f({ones(first ? 4 : 2), ones(2)})[1], {2, 2});
             expect_values(f({ones(first ? 4 : 2), ones(first ? 4 : 2)})[1], {6, 6});
             // A replicated feed must have equal shapes and equal values on all ranks.
             const auto refused = [&](const Array& own) {
               const std::string text = message_of<DisagreementError>([&] { f({ones(first ? 4 : 2), own}); });
               EXPECT_NE(text.find("input 'c' differs on ranks 0 and 1"), std::string::npos) << text;
             };
             refused(ones(first ? 3 : 2));
             refused(ones(first ? 1 : 0));
             refused(doubles({2, 2}, {1, 1, 1, first ? 1.0 : 2.0}));
             expect_values(f({ones(first ? 4 : 2), ones(2)})[1], {2, 2});
           },
           {.local_feeds = true});
}

}  // namespace
}  // namespace syncline::testing
