// Sparse feeds and variables on several ranks.
#include <gtest/gtest.h>

#include "ops/sparse/tensor.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/backend/sparse.h"
#include "syncline/backend/sparse_variable.h"
#include "tests/ops/refusal.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

// Most entries are in few rows, so that ranks have very different numbers of entries.
SparseArray skewed(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  std::vector<std::int64_t> row_of, column_of;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < (r % 4 == 1 ? columns : r % 2); ++c) {
      row_of.push_back(r);
      column_of.push_back((c * 3 + r) % columns);
    }
  const auto count = static_cast<std::int64_t>(row_of.size());
  return SparseArray::coo({rows, columns}, row_of, column_of, random_doubles({count}, seed));
}

Expr sparse_input(std::int64_t columns, std::string name = "x") {
  return placeholder({.shape = {kUnknown, columns}, .dtype = DType::kFloat64, .sparse = true, .name = std::move(name)});
}

// All uses of a sparse batch, in three training steps.
std::vector<Array> train_on(const std::function<SparseArray(const SparseArray&)>& part,
                            const std::function<Array(const Array&)>& dense_part) {
  const Expr x = sparse_input(7), z = sparse_input(2, "z");
  const Expr y = placeholder({.shape = {kUnknown, 3}, .dtype = DType::kFloat64});
  const Variable w = variable(random_doubles({9, 3}, 1));
  const SparseVariable table = variable(skewed(3, 4, 2));
  const Expr both = concatenate({x, z}), below = concatenate({x, x}, 0);
  const Expr out = dot(both, w), mixed = dot(table, constant(random_doubles({4, 2}, 5)));
  const Expr loss = mean(square(sin(dot(both, w)) - y)) + sum(square(mixed)) * 0.1;
  const auto g = gradients(loss, {w, table.values()});
  Function f({x, y, z},
             {loss, out, to_dense(both), to_dense(below), reverse(to_dense(x), {0}), mixed,
              to_dense(with_sparse_values(x, gradients(sum(square(out)), {sparse_values(x)})[0]))},
             {update_sub(w, g[0] * 0.1), update_sub(table.values(), g[1] * 0.1)});
  std::vector<Array> results;
  for (std::uint64_t step = 0; step < 3; ++step)
    for (Array& a :
         f({part(skewed(9, 7, step)), dense_part(random_doubles({9, 3}, 10 + step)), part(skewed(9, 2, 20 + step))}))
      results.push_back(a);
  results.push_back(get_value(w));
  results.push_back(get_value(table).to_dense());
  return results;
}

TEST(SparseOnRanks, HaveNoPartsOfTheBatch) {
  on_ranks(2,
           [](comm::Communicator&) {
             const Expr x = sparse_input(7);
             Function f({x}, {to_dense(x)}, {}, "f");
             expect_refused<ValueError>([&] { f({skewed(9, 7, 1)}); },
                                        "f: a sparse input cannot be divided into the parts of a batch");
           },
           {.parts = 8});
}

TEST(SparseOnRanks, GlobalFeeds) {
  expect_same_on_ranks(
      [] { return train_on([](const SparseArray& a) { return a; }, [](const Array& a) { return a; }); });
}

TEST(SparseOnRanks, LocalFeeds) {
  std::vector<Array> wanted;
  on_one_process([&] { wanted = train_on([](const SparseArray& a) { return a; }, [](const Array& a) { return a; }); });
  for (const std::vector<std::int64_t>& counts : {std::vector<std::int64_t>{4, 5}, {0, 9}, {3, 2, 4}, {1, 0, 8}}) {
    on_ranks(static_cast<int>(counts.size()),
             [&](comm::Communicator& communicator) {
               std::int64_t begin = 0;
               for (int r = 0; r < communicator.rank(); ++r) begin += counts[static_cast<std::size_t>(r)];
               const std::int64_t end = begin + counts[static_cast<std::size_t>(communicator.rank())];
               const auto got = train_on([&](const SparseArray& a) { return a.slice_rows(begin, end); },
                                         [&](const Array& a) { return a.rows(begin, end).copy(); });
               ASSERT_EQ(got.size(), wanted.size());
               for (std::size_t i = 0; i < got.size(); ++i)
                 expect_near(got[i], wanted[i], 1e-12, join_text("rank ", communicator.rank(), ", output ", i));
             },
             {.local_feeds = true});
  }
}

TEST(SparseOnRanks, EveryBatchSizeAndOddFeeds) {
  expect_same_on_ranks([] {
    const Expr x = sparse_input(5), square_one = sparse_input(5, "square");
    const Variable w = variable(random_doubles({5, 2}, 1));
    Function f({x, square_one}, {dot(x, w), dot(square_one, w), to_dense(concatenate({x, square_one}, 0))});
    std::vector<Array> results;
    for (const std::int64_t rows : {8, 1, 3, 2, 5, 0, 4})
      for (Array& a : f({skewed(rows, 5, 3), skewed(5, 5, 4)})) results.push_back(a);
    return results;
  });
}

// Each rank computes its own rows; the weight's gradient is the only sum on the wire.
TEST(SparseOnRanks, NothingIsGathered) {
  on_ranks(2, [](comm::Communicator&) {
    const Expr x = sparse_input(6);
    const Variable w = variable(random_doubles({6, 2}, 1));
    const Expr loss = mean(square(dot(concatenate({x, x}, 0), constant(random_doubles({6, 1}, 2)))));
    const Expr own = mean(square(dot(x, w)));
    Function f({x}, {own}, {update_sub(w, gradients(own, {w})[0])});
    const std::vector<Feed> feeds{skewed(8, 6, 1)};
    const std::string plan = f.describe(feeds);
    EXPECT_EQ(count_lines(plan, "all_gather"), 0) << plan;
    EXPECT_GE(count_lines(plan, "sparse_dot_transposed"), 1) << plan;
    EXPECT_NE(plan.find("(4, "), std::string::npos) << plan;  // four of the eight rows
    // A concatenation of rows has rows of several ranks.
    Function mixed({x}, {loss});
    EXPECT_GE(count_lines(mixed.describe(feeds), "all_gather"), 1);
  });
}

}  // namespace
}  // namespace syncline::testing
