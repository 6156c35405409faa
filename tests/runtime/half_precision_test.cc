// float16 in whole programs: the casts of a plan, sums that would overflow, training.
#include <gtest/gtest.h>

#include "syncline/backend/config.h"
#include "syncline/backend/control.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/session.h"
#include "syncline/training/optimizers.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

constexpr DType kHalf = DType::kFloat16;

class HalfPrecision : public ::testing::Test {
 protected:
  Session session_{3};
  SessionScope scope_{session_};
};

Array halves(Shape shape, std::vector<double> values) {
  return Array::from<double>(std::move(shape), values).cast(kHalf);
}

TEST_F(HalfPrecision, RoundsAfterEachOp) {
  const Expr x = placeholder({.shape = {1}, .dtype = kHalf});
  // 2048 + 1 is not a half: it rounds to 2048, and 2048 - 2048 is 0.
  Function f({x}, {x + 1.0 - 2048.0});
  expect_values(f({halves({1}, {2048})})[0], {0});
}

TEST_F(HalfPrecision, DoesNotRoundWithinAnOp) {
  const Expr x = placeholder({.shape = {4096}, .dtype = kHalf});
  Function f({x}, {sum(x * 0.25), mean(x * 16.0), cumsum(x * 0.25)});
  const std::vector<Array> y = f({halves({4096}, std::vector<double>(4096, 1))});
  EXPECT_EQ(y[0].dtype(), kHalf);
  EXPECT_EQ(y[0].item(), 1024);  // added up in float16, it would stay at 512
  EXPECT_EQ(y[1].item(), 16);    // the sum alone is 65536, which float16 does not hold
  EXPECT_EQ(y[2].cast(DType::kFloat64).values<double>().back(), 1024);
}

TEST_F(HalfPrecision, DoesNotRoundBetweenTheAxesOfAProduct) {
  const Expr x = placeholder({.shape = {2, 2}, .dtype = kHalf});
  Function f({x}, {prod(x)});
  expect_values(f({halves({2, 2}, {4096, 4096, 1.0 / 4096, 1.0 / 4096})})[0], {1});
}

TEST_F(HalfPrecision, OpsThatMoveElementsHaveNoCasts) {
  const Expr x = placeholder({.shape = {4, 3}, .dtype = kHalf});
  const Expr moved = concatenate({transpose(x), reverse(permute_dimensions(x, {1, 0}), {0})}, 0);
  Function f({x}, {gather(moved, constant(Array::from<std::int32_t>({2}, {5, 0})))});
  const Array feed = halves({4, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  EXPECT_EQ(count_lines(f.describe({&feed, 1}), "cast"), 0);
  expect_values(f({feed})[0], {0, 3, 6, 9, 0, 3, 6, 9});
}

TEST_F(HalfPrecision, CastsAreFusedWithTheirNeighbours) {
  const Expr x = placeholder({.shape = {100}, .dtype = kHalf});
  Function f({x}, {exp(x) * tanh(x) + 1.0});
  const Array feed(kHalf, {100});
  EXPECT_EQ(count_lines(f.describe({&feed, 1}), "cast"), 1) << f.describe({&feed, 1});
}

// A weight's gradient is summed over the iterations of a loop in float32.
TEST_F(HalfPrecision, LoopsAddUpInFloat32) {
  const Expr x = placeholder({.shape = {1, 4096, 1}, .dtype = kHalf});
  const Variable w = variable(halves({1}, {0}));
  const RnnResult r = rnn(
      [&](const Expr& in, const std::vector<Expr>& states) {
        return std::pair<Expr, std::vector<Expr>>{in * w + states[0] * 0.0, {in * w}};
      },
      x, {constant(Array(kHalf, {1, 1}))});
  const Expr loss = sum(r.outputs);
  Function f({x}, gradients(loss, std::vector<Expr>{w}));
  const Array dw = f({halves({1, 4096, 1}, std::vector<double>(4096, 0.25))})[0];
  EXPECT_EQ(dw.dtype(), kHalf);
  EXPECT_EQ(dw.item(), 1024);
}

// So is a bias's gradient, and the term of an iteration is not rounded either.
TEST_F(HalfPrecision, LoopsDoNotRoundWhatTheyAddUp) {
  constexpr std::int64_t kRows = 3, kTime = 4;
  const Expr x = placeholder({.shape = {kRows, kTime, 1}, .dtype = kHalf});
  const Variable b = variable(halves({1}, {0}));
  const RnnResult r = rnn(
      [&](const Expr& in, const std::vector<Expr>& states) {
        const Expr y = in * (states[0] * 0.0 + b);
        return std::pair<Expr, std::vector<Expr>>{y, {y}};
      },
      x, {constant(Array(kHalf, {kRows, 1}))});
  Function f({x}, gradients(sum(r.outputs), std::vector<Expr>{b}));
  // The terms of the iterations are 2049, 150000, -150000 and 1; float16 has only the last one exactly.
  const Array db =
      f({halves({kRows, kTime, 1}, {2048, 50000, -50000, 1, 1, 50000, -50000, 0, 0, 50000, -50000, 0})})[0];
  EXPECT_EQ(db.item(), 2050);
}

TEST_F(HalfPrecision, RandomNumbersStayInTheirInterval) {
  const Array u = eval(random_uniform({5000}, {.minval = 0, .maxval = 1, .dtype = kHalf}));
  EXPECT_EQ(u.dtype(), kHalf);
  double sum = 0;
  for (const double v : numbers(u.cast(DType::kFloat64))) {
    EXPECT_GE(v, 0);
    EXPECT_LT(v, 1);  // float32 draws above 0.9998 round to 1
    sum += v;
  }
  EXPECT_NEAR(sum / 5000, 0.5, 0.02);
}

// With floatx float16 a perceptron learns a rule that is easy to learn in float32.
TEST_F(HalfPrecision, APerceptronLearns) {
  set_floatx(kHalf);
  const Expr x = placeholder({.shape = {kUnknown, 8}, .dtype = kHalf}),
             y = placeholder({.shape = {kUnknown}, .dtype = DType::kInt32});
  const Variable w1 = random_normal_variable({8, 32}, 0, 0.35), b1 = zeros({32});
  const Variable w2 = random_normal_variable({32, 2}, 0, 0.25), b2 = zeros({2});
  EXPECT_EQ(w1.dtype(), kHalf);
  const Expr hidden = relu(dot(x, w1) + b1);
  const Expr logits = dot(hidden, w2) + b2;
  const Expr loss = mean(sparse_categorical_crossentropy(y, logits, {.from_logits = true}));
  const Expr accuracy = mean(equal(argmax(logits), cast(y, DType::kInt64)));
  const std::vector<Variable> variables{w1, b1, w2, b2};
  Function train({x, y}, {loss, accuracy}, sgd(loss, variables, {.learning_rate = 0.2, .momentum = 0.9}).updates);
  std::vector<double> first, last;
  for (std::uint64_t step = 0; step < 150; ++step) {
    const Array rows = random_doubles({64, 8}, step);
    Array classes(DType::kInt32, {64});
    for (int i = 0; i < 64; ++i) {
      const double* row = rows.data<double>() + 8 * i;
      classes.data<std::int32_t>()[i] = row[0] + row[1] > row[2] * row[3] ? 1 : 0;
    }
    const std::vector<Array> out = train({rows.cast(kHalf), classes});
    EXPECT_EQ(out[0].dtype(), kHalf);
    (step == 0 ? first : last).assign({out[0].item(), out[1].item()});
  }
  EXPECT_LT(last[0], 0.25 * first[0]);
  EXPECT_GT(last[1], 0.9);
}

}  // namespace
}  // namespace syncline::testing
