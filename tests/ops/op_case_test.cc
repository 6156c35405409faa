// Runs the op cases in the modes that need one rank: shape and value, gradient, bits. Every op must have a row.
#include "tests/ops/op_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "ops/graph/op.h"
#include "ops/kernels/parallel.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/session.h"
#include "tests/ops/gradient_check.h"

namespace syncline::testing {
namespace {

class OpCases : public ::testing::TestWithParam<std::size_t> {
 protected:
  const OpCase& row() const { return all_cases()[GetParam()]; }
  Session session_{3};
  SessionScope scope_{session_};
};

bool near(double got, double wanted, double tolerance) {
  if (std::isnan(wanted)) return std::isnan(got);
  if (std::isinf(wanted)) return got == wanted;
  return std::abs(got - wanted) <= tolerance * std::max(1.0, std::abs(wanted));
}

void expect_near(const Array& got, const Tensor& wanted, double tolerance) {
  ASSERT_EQ(got.shape(), wanted.shape);
  const Tensor values = tensor_of(got);
  for (std::size_t i = 0; i < wanted.values.size(); ++i)
    ASSERT_TRUE(near(values.values[i], wanted.values[i], tolerance))
        << "element " << i << " of " << got.shape() << ": " << values.values[i] << ", wanted " << wanted.values[i];
}

std::vector<Expr> open_placeholders(const std::vector<Array>& feeds) {
  std::vector<Expr> x;
  for (const Array& feed : feeds) {
    Shape shape = feed.shape();
    if (shape.ndim() > 0) shape[0] = kUnknown;
    x.push_back(placeholder({.shape = shape, .dtype = feed.dtype()}));
  }
  return x;
}

void expect_value(const OpCase& row, const std::vector<Expr>& x, const std::vector<Array>& feeds, double tolerance) {
  const Expr y = row.build(x);
  Function f(x, {y});
  const Array got = f(feeds)[0];
  EXPECT_EQ(got.dtype(), y.dtype());
  EXPECT_TRUE(accepts(y.shape(), got.shape())) << "inferred " << y.shape() << ", computed " << got.shape();
  if (!row.reference) return;
  std::vector<Tensor> in;
  for (const Array& feed : feeds) in.push_back(tensor_of(feed));
  expect_near(got, row.reference(in), tolerance);
}

TEST_P(OpCases, Value) {
  const OpCase& c = row();
  EXPECT_TRUE(static_cast<bool>(c.reference) || !c.no_reference.empty()) << "a row needs a reference, or a reason";
  for (const bool wide : {false, true}) {
    const std::vector<Array> feeds = make_inputs(c.inputs, 1, wide);
    const double tolerance = wide && c.tolerance <= 1e-4 ? std::min(c.tolerance, 1e-6) : c.tolerance;
    expect_value(c, placeholders_for(feeds), feeds, tolerance);
    if (c.open_batch) expect_value(c, open_placeholders(feeds), feeds, tolerance);
  }
}

TEST_P(OpCases, Gradient) {
  const OpCase& c = row();
  if (!c.gradient) GTEST_SKIP();
  for (const std::uint64_t point : {1, 2}) {
    const std::vector<Array> at = make_inputs(c.inputs, point, /*wide=*/true);
    EXPECT_EQ(compare_gradients(c.build, at, c.gradient_tolerance), "");
    if (!c.second_gradient) continue;
    EXPECT_EQ(compare_gradients(gradient_of(c.build), at, 10 * c.gradient_tolerance), "");
  }
}

// Gradients of a graph that is built with an unknown batch size.
TEST_P(OpCases, OpenGradient) {
  const OpCase& c = row();
  if (!c.gradient || !c.open_batch) GTEST_SKIP();
  const std::vector<Array> feeds = make_inputs(c.inputs, 1, /*wide=*/true);
  std::vector<std::vector<Array>> results;
  for (const std::vector<Expr>& x : {placeholders_for(feeds), open_placeholders(feeds)}) {
    const Expr y = c.build(x);
    if (!is_floating(y.dtype())) return;
    std::vector<Expr> wrt, found;
    for (const Expr& e : x)
      if (is_floating(e.dtype())) wrt.push_back(e);
    for (const Expr& dx : gradients(y, wrt))
      if (dx) found.push_back(dx);
    results.push_back(Function(x, found)(feeds));
  }
  ASSERT_EQ(results[0].size(), results[1].size());
  for (std::size_t k = 0; k < results[0].size(); ++k) expect_near(results[1][k], tensor_of(results[0][k]), 1e-12);
}

TEST_P(OpCases, Bits) {
  const OpCase& c = row();
  const std::vector<Array> feeds = make_inputs(c.large.empty() ? c.inputs : c.large, 1);
  const std::vector<Expr> x = placeholders_for(feeds);
  Function f(x, {c.build(x)});
  const int threads = thread_count();
  set_thread_count(1);
  const Array alone = f(feeds)[0].copy();
  set_thread_count(2);
  const Array shared = f(feeds)[0].copy();
  set_thread_count(threads);
  if (row().build(x).op().random_op != nullptr) return;  // each step draws new numbers
  EXPECT_EQ(std::memcmp(alone.raw(), shared.raw(), alone.bytes()), 0) << "1 and 2 threads compute different bits";
}

// Ops that only plans insert. The runtime's tests cover them, and the row `mask` covers true_at. ctc_second_derivative
// has no values, because it only throws (tests/python/arguments_test.py).
const std::set<std::string_view> kWithoutRows{"all_gather", "all_reduce",           "copy", "interleave", "own_rows",
                                              "true_at",    "ctc_second_derivative"};

TEST(OpTable, EveryOpHasARow) {
  Session session(3);
  SessionScope scope(session);
  std::set<const OpDef*> used;
  for (const OpCase& c : all_cases()) {
    std::vector<std::vector<Expr>> variants{placeholders_for(make_inputs(c.inputs, 1))};
    if (c.open_batch) variants.push_back(open_placeholders(make_inputs(c.inputs, 1)));
    for (const std::vector<Expr>& x : variants) {
      std::vector<Expr> roots{c.build(x)}, wrt;
      for (const Expr& e : x)
        if (is_floating(e.dtype())) wrt.push_back(e);
      if (c.gradient && is_floating(roots[0].dtype()))
        for (const Expr& dx : gradients(roots[0], wrt))
          if (dx) roots.push_back(dx);
      for (const auto& node : nodes_under(roots)) used.insert(node->op);
    }
  }
  for (const OpDef* op : registered_ops()) {
    if (op->leaf || kWithoutRows.contains(op->name)) continue;
    EXPECT_TRUE(used.contains(op)) << "the op " << op->name << " has no row in tests/ops/cases_*.cc";
  }
}

INSTANTIATE_TEST_SUITE_P(Table, OpCases, ::testing::ValuesIn(numbers_of_cases()),
                         [](const auto& info) { return all_cases()[info.param].name; });

}  // namespace
}  // namespace syncline::testing
