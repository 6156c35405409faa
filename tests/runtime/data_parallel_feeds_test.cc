// Which rows a rank gets: of a batch that every rank hands over, and of batches that the ranks bring themselves.
#include <gtest/gtest.h>

#include "ops/gradients.h"
#include "ops/linalg.h"
#include "ops/math.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "runtime/function.h"
#include "runtime/session.h"
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

// Rank r of `counts` brings rows [begin, begin + counts[r]) of the batch.
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
           [&](comm::Communicator& wire) {
             const auto got = train_on([&](const Array& batch) { return own_rows(batch, counts, wire.rank()); });
             ASSERT_EQ(got.size(), wanted.size());
             for (std::size_t i = 0; i < got.size(); ++i)
               expect_near(got[i], wanted[i], 1e-12,
                           join_text("rank ", wire.rank(), " of ", counts.size(), " output ", i));
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
           [](comm::Communicator& wire) {
             const Expr x = input({kUnknown, 1});
             Function f({x}, {x, sum(x)});
             for (const std::int64_t first : {1, 3, 0, 1, 4, 3}) {
               const Array batch = random_doubles({4, 1}, static_cast<std::uint64_t>(first));
               const auto out = f({own_rows(batch, {first, 4 - first}, wire.rank())});
               expect_near(out[0], batch, 0);
               double total = 0;
               for (const double v : numbers(batch)) total += v;
               EXPECT_NEAR(out[1].item(), total, 1e-14);
             }
           },
           {.local_feeds = true});
}

}  // namespace
}  // namespace syncline::testing
