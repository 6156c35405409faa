// The gradient of a table is rows and indices up to the update, on the wire too. The update touches only these rows.
#include <gtest/gtest.h>

#include <mutex>

#include "comm/local/local_communicator.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/session.h"
#include "tests/ops/op_case.h"

namespace syncline::testing {
namespace {

constexpr std::int64_t kRows = 50, kWidth = 4, kBatch = 5;

struct Embedding {
  Variable table = variable(random_array(DType::kFloat32, {kRows, kWidth}, -1, 1, 1), {.name = "table"});
  Expr indices = placeholder({.shape = {kUnknown, 3}, .dtype = DType::kInt32, .name = "indices"});
  Array feed = random_array(DType::kInt32, {kBatch, 3}, 0, kRows - 1, 2);
  Expr loss = mean(square(gather(table, indices)));
  Function step{{indices}, {loss}, {update_sub(table, gradients(loss, {table.expr()})[0] * 0.1)}};
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Rows, UpdateTouchesOnlyItsRows) {
  Session session(1);
  SessionScope scope(session);
  Embedding e;
  const std::string plan = e.step.describe(std::vector<Array>{e.feed});
  EXPECT_TRUE(contains(plan, "scatter_sub")) << plan;
  EXPECT_FALSE(contains(plan, "scatter_rows")) << plan;
  const Array before = get_value(e.table);
  const float* storage = e.table.state().value().data<float>();
  e.step({e.feed});
  EXPECT_EQ(e.table.state().value().data<float>(), storage);
  // The arena holds the batch's rows, not a second table.
  EXPECT_LT(e.step.arena_bytes(std::vector<Array>{e.feed}), before.bytes() * 4);
  const Array after = get_value(e.table);
  for (std::int64_t row = 0; row < kRows; ++row) {
    const auto indices = e.feed.values<std::int32_t>();
    const bool used = std::find(indices.begin(), indices.end(), row) != indices.end();
    EXPECT_EQ(before.data<float>()[row * kWidth] != after.data<float>()[row * kWidth], used) << "row " << row;
  }
}

TEST(Rows, RanksExchangeRowsNotTables) {
  std::vector<Array> tables(2);
  std::mutex mutex;
  comm::spawn_ranks(2, [&](comm::Communicator& communicator) {
    Session session(1);
    session.distribute(make_data_parallel(communicator));
    SessionScope scope(session);
    Embedding e;
    const std::string plan = e.step.describe(std::vector<Array>{e.feed});
    e.step({e.feed});
    std::lock_guard lock(mutex);
    EXPECT_FALSE(contains(plan, join_text("all_reduce float32(", kRows))) << plan;
    EXPECT_TRUE(contains(plan, "all_gather")) << plan;
    tables[static_cast<std::size_t>(communicator.rank())] = get_value(e.table);
  });
  const auto a = tables[0].values<float>(), b = tables[1].values<float>();
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin()));
}

// The gradient of a table with fewer elements than the batch's rows is summed over ranks, not gathered.
TEST(Rows, RanksSumSmallTables) {
  constexpr std::int64_t kMany = 30;
  const Array table = random_array(DType::kFloat64, {2, kWidth}, -1, 1, 1);
  const Array indices = random_array(DType::kInt32, {kMany}, 0, 1, 2);
  const auto gradient_on = [&](int ranks, std::string& plan) {
    Array result;
    std::mutex mutex;
    comm::spawn_ranks(ranks, [&](comm::Communicator& communicator) {
      Session session(1);
      session.distribute(make_data_parallel(communicator));
      SessionScope scope(session);
      const Variable w = variable(table);
      const Expr index = placeholder({.shape = {kUnknown}, .dtype = DType::kInt32});
      const Expr rows = gather(w, index);
      Function f({index}, gradients(sum(rows * rows * rows), {w.expr()}));
      const Array found = f({indices})[0];
      std::lock_guard lock(mutex);
      plan = f.describe(std::vector<Array>{indices});
      result = found.copy();
    });
    return result;
  };
  std::string plan;
  const Array one = gradient_on(1, plan), three = gradient_on(3, plan);
  EXPECT_TRUE(contains(plan, "all_reduce")) << plan;
  EXPECT_FALSE(contains(plan, "all_gather")) << plan;
  for (std::int64_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one.data<double>()[i], three.data<double>()[i], 1e-12);
}

TEST(Rows, IndexOutsideTheTableIsAnError) {
  Session session(1);
  SessionScope scope(session);
  Embedding e;
  const Array wrong = Array::from<std::int32_t>({1, 3}, {0, kRows, 1});
  try {
    e.step({wrong});
    FAIL() << "no error";
  } catch (const ValueError& error) {
    EXPECT_TRUE(contains(error.what(), "gather: index 50 at position 1 of the indices is outside [0, 50)"))
        << error.what();
  }
}

}  // namespace
}  // namespace syncline::testing
