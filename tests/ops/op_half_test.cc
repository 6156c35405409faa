// The op cases on float16: values and gradients equal those of float32, up to the rounding of each op's result.
#include <gtest/gtest.h>

#include <cmath>

#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/session.h"
#include "tests/ops/gradient_check.h"
#include "tests/ops/op_case.h"

namespace syncline::testing {
namespace {

class OpHalf : public ::testing::TestWithParam<std::size_t> {};

// The op's value, then its gradients.
std::vector<Array> compute(const OpCase& row, const std::vector<Array>& feeds) {
  Session session(3);
  SessionScope scope(session);
  const std::vector<Expr> x = placeholders_for(feeds);
  std::vector<Expr> wrt, roots{row.build(x)};
  for (const Expr& e : x)
    if (is_floating(e.dtype())) wrt.push_back(e);
  if (row.gradient && is_floating(roots[0].dtype()))
    for (const Expr& dx : gradients(weighted_sum(roots[0], 7), wrt))
      if (dx) roots.push_back(dx);
  std::vector<Array> results = Function(x, roots)(feeds);
  for (std::size_t i = 0; i < roots.size(); ++i) {
    EXPECT_EQ(results[i].dtype(), roots[i].dtype());
    results[i] = results[i].copy();
  }
  return results;
}

// Allows a few roundings of the largest result: a chain of ops rounds after each op.
void expect_close(const Array& half, const Array& wanted, const std::string& what) {
  ASSERT_EQ(half.shape(), wanted.shape()) << what;
  const Tensor a = tensor_of(half), b = tensor_of(wanted);
  double largest = 1;
  for (const double v : b.values)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double x = a.values[i], y = b.values[i];
    const bool overflows = std::abs(y) >= 65504;
    const bool close = std::isnan(y) ? std::isnan(x)
                       : overflows   ? std::abs(x) > 6e4
                                     : std::abs(x - y) <= 8e-3 * largest;
    ASSERT_TRUE(close) << what << ", element " << i << ": " << x << ", in float32 " << y;
  }
}

TEST_P(OpHalf, ComputesWhatFloat32Computes) {
  const OpCase& row = all_cases()[GetParam()];
  if (!row.half) GTEST_SKIP();
  const std::vector<Array> halves = make_halves(row.inputs, 1);
  std::vector<Array> singles = halves;
  for (Array& feed : singles)
    if (feed.dtype() == DType::kFloat16) feed = feed.cast(DType::kFloat32);
  const std::vector<Array> got = compute(row, halves), wanted = compute(row, singles);
  ASSERT_EQ(got.size(), wanted.size());
  expect_close(got[0], wanted[0], "value");
  for (std::size_t k = 1; k < got.size(); ++k) expect_close(got[k], wanted[k], join_text("gradient ", k));
}

INSTANTIATE_TEST_SUITE_P(Table, OpHalf, ::testing::ValuesIn(numbers_of_cases()),
                         [](const auto& info) { return all_cases()[info.param].name; });

}  // namespace
}  // namespace syncline::testing
