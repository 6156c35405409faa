// The statistics of a batch in float32: values far from 0, every way in which rows and columns are added up, equal
// bits.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/kernels/instruction_sets.h"
#include "syncline/backend/core.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/session.h"
#include "syncline/threads.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

// float32 near 1000, with a standard deviation of 0.6.
Array far_values(const Shape& shape) {
  Array values = random_doubles(shape, 3);
  for (double& x : std::span(values.data<double>(), static_cast<std::size_t>(values.size()))) x += 1000;
  return values.cast(DType::kFloat32);
}

// The mean and the variance over axes 0 and 2, each of shape (x.shape[1]).
std::vector<Array> moments(const Array& values) {
  const Expr x = placeholder({.shape = values.shape()});
  const NormalizedBatch batch = normalize_batch_in_training(x, {}, {}, {0, 2});
  return Function({x}, {batch.mean, batch.variance})({values});
}

class Moments : public ::testing::TestWithParam<Shape> {
 protected:
  ~Moments() override {
    kernels::use_best_instruction_set();
    set_thread_count(threads_);
  }
  const int threads_ = thread_count();
  Session session_;
};

TEST_P(Moments, KeepTheDigitsOfTheVariance) {
  const Shape& shape = GetParam();
  const Array values = far_values(shape);
  const std::vector<double> x = numbers(values);
  const std::vector<Array> got = moments(values);
  const auto channels = static_cast<std::size_t>(shape[1]), inner = static_cast<std::size_t>(shape[2]);
  for (std::size_t c = 0; c < channels; ++c) {
    double sum = 0, squares = 0, n = 0;
    const auto each = [&](auto f) {
      for (std::size_t at = c * inner; at < x.size(); at += channels * inner)
        for (std::size_t i = 0; i < inner; ++i) f(x[at + i]);
    };
    each([&](double value) { sum += value, ++n; });
    each([&](double value) { squares += (value - sum / n) * (value - sum / n); });
    EXPECT_NEAR(numbers(got[0])[c], sum / n, 1e-7 * sum / n);
    EXPECT_NEAR(numbers(got[1])[c], squares / n, 1e-6 * squares / n) << c;
  }
}

TEST_P(Moments, HaveEqualBitsEverywhere) {
  const Array values = far_values(GetParam());
  const std::vector<Array> wanted = moments(values);
  for (const kernels::InstructionSet& set : kernels::instruction_sets())
    for (const int threads : {1, 2, 3}) {
      kernels::use_instruction_set(set);
      set_thread_count(threads);
      const std::vector<Array> got = moments(values);
      for (const std::size_t i : {0, 1}) EXPECT_TRUE(same_bits(got[i], wanted[i])) << set.name << ", " << threads;
    }
}

// A program computes the operand, tile by tile.
TEST_P(Moments, HaveTheBitsOfAStoredOperand) {
  const Array values = far_values(GetParam());
  const Expr x = placeholder({.shape = values.shape()});
  const Array stored = Function({x}, {square(x) - 3.0})({values})[0];
  const NormalizedBatch batch = normalize_batch_in_training(square(x) - 3.0, {}, {}, {0, 2});
  const std::vector<Array> got = Function({x}, {batch.mean, batch.variance})({values}), wanted = moments(stored);
  for (const std::size_t i : {0, 1}) EXPECT_TRUE(same_bits(got[i], wanted[i]));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Moments,
                         ::testing::Values(Shape{1, 1, 5000}, Shape{5000, 1, 1}, Shape{70001, 1, 1}, Shape{30011, 3, 1},
                                           Shape{40, 3, 500}, Shape{3000, 16, 1}, Shape{3001, 15, 1}, Shape{999, 61, 1},
                                           Shape{9, 64, 111}, Shape{300, 700, 1}, Shape{77, 2050, 1}, Shape{1, 40, 7},
                                           Shape{2, 3, 1}));

TEST(MomentValues, OfEqualElementsAreExact) {
  Session session;
  Array values(DType::kFloat32, {1001, 3});
  std::ranges::fill(std::span(values.data<float>(), 3003), 123.4f);
  const Expr x = placeholder({.shape = {1001, 3}});
  const NormalizedBatch batch = normalize_batch_in_training(x, {}, {}, {0});
  const std::vector<Array> got = Function({x}, {batch.normalized, batch.mean, batch.variance})({values});
  for (const double value : numbers(got[0])) EXPECT_EQ(value, 0);
  for (const double value : numbers(got[1])) EXPECT_EQ(value, 123.4f);
  for (const double value : numbers(got[2])) EXPECT_NEAR(value, 0, 1e-10);
}

// The gradient and a gradient's gradient, against those of the two passes in float64.
TEST(MomentValues, GradientsAreThoseOfFloat64) {
  for (const double mean : {0., 1000.}) {
    const auto gradients_in = [&](DType dtype) {
      Session session;
      const Expr x = placeholder({.shape = {40, 5}, .dtype = dtype}),
                 w = placeholder({.shape = {40, 5}, .dtype = dtype});
      const NormalizedBatch batch = normalize_batch_in_training(x, {}, {}, {0});
      const Expr loss = sum(w * batch.normalized) + sum(square(batch.variance));
      const Expr first = gradients(loss, {x})[0];
      const Expr second = gradients(sum(square(first)), {x})[0];
      const Array feed = (mean == 0 ? random_doubles({40, 5}, 1).cast(DType::kFloat32) : far_values({40, 5}));
      return Function({x, w}, {first, second})({feed.cast(dtype), random_doubles({40, 5}, 2).cast(dtype)});
    };
    const std::vector<Array> got = gradients_in(DType::kFloat32), wanted = gradients_in(DType::kFloat64);
    for (const std::size_t i : {0, 1})
      expect_near(got[i].cast(DType::kFloat64), wanted[i], mean == 0 ? 1e-5 : 2e-4, std::to_string(mean));
  }
}

}  // namespace
}  // namespace syncline::testing
