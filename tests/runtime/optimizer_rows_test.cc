// Embeddings: plain gradient descent writes only the rows of the table that the step used.
#include <gtest/gtest.h>

#include "syncline/backend/function.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/session.h"
#include "syncline/training/optimizers.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

constexpr std::int64_t kRows = 20, kWidth = 3;

class RowsTest : public ::testing::Test {
 protected:
  RowsTest() : table(variable(random_doubles({kRows, kWidth}, 1), {.name = "embedding"})) {
    indices = placeholder({.shape = {kUnknown}, .dtype = DType::kInt32});
    loss = sum(square(gather(table, indices)));
  }
  Array used(std::initializer_list<std::int32_t> rows) {
    return Array::from<std::int32_t>({static_cast<std::int64_t>(rows.size())}, rows);
  }

  Session session_;
  SessionScope scope_{session_};
  Variable table;
  Expr indices, loss;
};

TEST_F(RowsTest, SgdTouchesTheUsedRowsOnly) {
  const std::vector<Variable> variables{table};
  Function f({indices}, {loss}, sgd(loss, variables, {.learning_rate = 0.1}).updates);
  const std::vector<Array> feeds{used({4, 7, 4})};
  const std::string plan = f.describe(feeds);
  EXPECT_EQ(count_lines(plan, "scatter_sub"), 1) << plan;
  EXPECT_EQ(count_lines(plan, "scatter_rows"), 0) << plan;
  EXPECT_EQ(count_lines(plan, "assign embedding"), 0) << plan;

  const Array before = get_value(table);
  f(feeds);
  const Array after = get_value(table);
  for (std::int64_t r = 0; r < kRows; ++r) {
    if (r != 4 && r != 7) {
      EXPECT_TRUE(same_bits(before.rows(r, r + 1), after.rows(r, r + 1))) << "row " << r;
      continue;
    }
    const double times = r == 4 ? 2 : 1;  // a row that is used twice moves twice
    for (std::int64_t k = 0; k < kWidth; ++k) {
      const double w = before.data<double>()[r * kWidth + k];
      EXPECT_NEAR(after.data<double>()[r * kWidth + k], w - 0.1 * times * 2 * w, 1e-14) << "row " << r;
    }
  }
}

TEST_F(RowsTest, ATableUsedTwiceInOneLoss) {
  const Expr more = placeholder({.shape = {kUnknown}, .dtype = DType::kInt32});
  const Expr both = loss + sum(gather(table, more) * 3.0);
  const std::vector<Variable> variables{table};
  Function f({indices, more}, {}, sgd(both, variables, {.learning_rate = 0.1}).updates);
  const Array before = get_value(table);
  f({used({1}), used({1, 2})});
  const Array after = get_value(table);
  for (std::int64_t k = 0; k < kWidth; ++k) {
    const double w1 = before.data<double>()[kWidth + k], w2 = before.data<double>()[2 * kWidth + k];
    EXPECT_NEAR(after.data<double>()[kWidth + k], w1 - 0.1 * (2 * w1 + 3), 1e-14);
    EXPECT_NEAR(after.data<double>()[2 * kWidth + k], w2 - 0.1 * 3, 1e-14);
  }
  EXPECT_TRUE(same_bits(before.rows(3, kRows), after.rows(3, kRows)));
}

TEST_F(RowsTest, NoIndices) {
  const std::vector<Variable> variables{table};
  Function f({indices}, {}, sgd(loss, variables).updates);
  const Array before = get_value(table);
  f({used({})});
  EXPECT_TRUE(same_bits(before, get_value(table)));
}

TEST_F(RowsTest, TheOldTableCanBeFetched) {
  const std::vector<Variable> variables{table};
  Function f({indices}, {table}, sgd(loss, variables).updates);
  const Array before = get_value(table);
  EXPECT_TRUE(same_bits(f({used({0, 5})})[0], before));
  EXPECT_FALSE(same_bits(get_value(table), before));
}

TEST_F(RowsTest, AdamsMomentsDecayInEveryRow) {
  const std::vector<Variable> variables{table};
  const Optimizer o = adam(loss, variables);
  Function f({indices}, {}, o.updates);
  f({used({4})});
  const Array m = get_value(o.weights.at(1)), v = get_value(o.weights.at(2)), w = get_value(table);
  f({used({7})});
  const Array new_m = get_value(o.weights.at(1)), new_v = get_value(o.weights.at(2));
  for (std::int64_t k = 0; k < kWidth; ++k) {
    const std::int64_t i = 4 * kWidth + k;  // row 4 was used in the first step only
    EXPECT_NEAR(new_m.data<double>()[i], 0.9 * m.data<double>()[i], 1e-15);
    EXPECT_NEAR(new_v.data<double>()[i], 0.999 * v.data<double>()[i], 1e-15);
    EXPECT_NE(get_value(table).data<double>()[i], w.data<double>()[i]);
  }
}

}  // namespace
}  // namespace syncline::testing
