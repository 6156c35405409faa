// Loops with so many rows that they form their weights' gradients several iterations at a time
// (runtime/passes/fold_products.cc).
#include <gtest/gtest.h>

#include <string>

#include "comm/local/local_communicator.h"
#include "ops/kernels/product/rows_product.h"
#include "syncline/backend/control.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/random.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/session.h"

namespace syncline {
namespace {

using Exprs = std::vector<Expr>;

// Neither kRows nor kTime is a multiple of the other.
constexpr std::int64_t kRows = 30, kTime = 37, kFeatures = 5, kUnits = 6;

Array batch(std::int64_t rows = kRows, std::int64_t time = kTime) {
  Array a(DType::kFloat64, {rows, time, kFeatures});
  for (std::int64_t i = 0; i < a.size(); ++i) a.data<double>()[i] = static_cast<double>(i * 37 % 41) / 20 - 1;
  return a;
}

struct Weights {
  Variable kernel = weight({kFeatures, 3 * kUnits}, 1), recurrent = weight({kUnits, 3 * kUnits}, 2),
           bias = weight({3 * kUnits}, 3);

  static Variable weight(const Shape& shape, std::uint64_t op) {
    return variable(random_uniform(shape, {3, op}, {-0.5, 0.5, DType::kFloat64}));
  }
};

// A gated recurrent unit. The loss uses its last output or all outputs.
struct Network {
  enum Loss { kLast, kOutputs };
  Expr x;
  Exprs values;  // the loss, the gradients, with kOutputs the outputs

  Network(const Weights& w, Loss of, const RnnOptions& options, std::int64_t time = kTime)
      : x(placeholder({.shape = {kUnknown, time, kFeatures}, .dtype = DType::kFloat64})) {
    const RnnStep step = [&w](const Expr& e, const Exprs& s) {
      const Expr a = dot(e, w.kernel) + w.bias, b = dot(s[0], w.recurrent);
      auto part = [](const Expr& v, int i) { return slice_axis(v, 1, i * kUnits, kUnits); };
      const Expr update = sigmoid(part(a, 0) + part(b, 0)), reset = sigmoid(part(a, 1) + part(b, 1));
      const Expr h = update * s[0] + (1.0 - update) * tanh(part(a, 2) + reset * part(b, 2));
      return std::pair{h, Exprs{h}};
    };
    const Expr zero = repeat_elements(expand_dims(sum(x, {1, 2}) * 0.0, 1), kUnits, 1);
    const RnnResult r = rnn(step, x, {zero}, options);
    const Expr loss = of == kLast ? mean(square(r.last_output - 0.5)) : mean(square(r.outputs - 0.5));
    values = {loss};
    for (const Expr& d : gradients(loss, {w.kernel.expr(), w.recurrent.expr(), w.bias.expr(), x})) values.push_back(d);
    if (of == kOutputs) values.push_back(r.outputs);
  }
};

void expect_near(const std::vector<Array>& a, const std::vector<Array>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    ASSERT_EQ(a[k].shape(), b[k].shape());
    for (std::int64_t i = 0; i < a[k].size(); ++i)
      ASSERT_NEAR(a[k].data<double>()[i], b[k].data<double>()[i], 1e-12) << "value " << k;
  }
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

class LoopProducts : public ::testing::Test {
 protected:
  Session session_{3};
  SessionScope scope_{session_};
};

TEST_F(LoopProducts, AreWhatTheUnrolledIterationsGive) {
  const Weights weights;
  for (const Network::Loss of : {Network::kLast, Network::kOutputs})
    for (const bool go_backwards : {false, true}) {
      const Network loop(weights, of, {.go_backwards = go_backwards}),
          unrolled(weights, of, {.go_backwards = go_backwards, .unroll = true});
      Function f({loop.x}, loop.values), g({unrolled.x}, unrolled.values);
      const Array x = batch();
      const std::string plan = f.describe({&x, 1});
      EXPECT_EQ(count_of(plan, "; every 8 iterations dot_kernel_grad"), 2u) << plan;
      EXPECT_EQ(count_of(plan, "\ndot_kernel_grad"), 0u) << plan;
      const std::vector<Array> expected = g({x});
      for (int run = 0; run < 2; ++run) expect_near(f({x}), expected);
    }
}

// The products consume their operands a few iterations at a time, so no stack holds the values of all iterations.
TEST_F(LoopProducts, NeedNoStackOfAllIterations) {
  const Weights weights;
  const Network loop(weights, Network::kLast, {});
  const Array x = batch();
  const std::string plan = Function({loop.x}, {loop.values[0], loop.values[1], loop.values[2]}).describe({&x, 1});
  const std::size_t at = plan.find("; every 8 iterations");
  ASSERT_NE(at, std::string::npos) << plan;
  EXPECT_EQ(count_of(plan.substr(at, plan.find('\n', at) - at), "float64(37, 30, 18)"), 0u) << plan;
}

// An iteration of so many rows that its product is a sum of parts, in the memory of the body.
TEST_F(LoopProducts, OfManyRowsAreSumsOfParts) {
  constexpr std::int64_t kMany = 20000, kSteps = 3;
  EXPECT_GT(kernels::rows_product_scratch(kMany, kUnits, 3 * kUnits, sizeof(double)), 0u);
  const Weights weights;
  const Network loop(weights, Network::kLast, {}, kSteps), unrolled(weights, Network::kLast, {.unroll = true}, kSteps);
  Function f({loop.x}, loop.values), g({unrolled.x}, unrolled.values);
  const Array x = batch(kMany, kSteps);
  const std::string plan = f.describe({&x, 1});
  EXPECT_EQ(count_of(plan, "; every 1 iterations dot_kernel_grad"), 2u) << plan;
  const std::vector<Array> expected = g({x});
  for (int run = 0; run < 2; ++run) expect_near(f({x}), expected);
}

// The loss and the weights' gradients of the second of two steps, which would show values left over from the first.
std::vector<Array> second_step(std::int64_t rows, std::int64_t time) {
  const Weights weights;
  const Network loop(weights, Network::kLast, {}, time);
  Function f({loop.x}, {loop.values[0], loop.values[1], loop.values[2], loop.values[3]});
  f({batch(rows + 1, time)});
  return f({batch(rows, time)});
}

void expect_same_over_ranks(int ranks, std::int64_t rows, std::int64_t time) {
  const std::vector<Array> alone = [&] {
    Session session(3);
    SessionScope scope(session);
    return second_step(rows, time);
  }();
  comm::spawn_ranks(ranks, [&](comm::Communicator& communicator) {
    Session session(3);
    session.distribute(make_data_parallel(communicator));
    SessionScope scope(session);
    expect_near(second_step(rows, time), alone);
  });
}

TEST_F(LoopProducts, AreTheSameOverRanks) { expect_same_over_ranks(2, kRows, kTime); }

// A rank without rows runs all iterations, many of them at a time, and contributes zeros.
TEST_F(LoopProducts, AreZeroWhereThereAreNoRows) {
  expect_same_over_ranks(3, 2, 300);
  expect_same_over_ranks(3, 2, 5);
}

}  // namespace
}  // namespace syncline
