// Shapes that products, gathers, subscripts and other functions reject, and the error messages.
#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <limits>

#include "ops/graph/leaf.h"
#include "syncline/backend/convolution.h"
#include "syncline/backend/core.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/backend/variable.h"
#include "tests/ops/refusal.h"

namespace syncline::testing {
namespace {

Expr of_shape(Shape shape, DType dtype = DType::kFloat32) {
  return apply<Placeholder>({}, {.dtype = dtype, .shape = std::move(shape)});
}

Expr outer_sum(std::int64_t n) { return of_shape({n, 1}) + of_shape({n}); }

TEST(Refusals, BatchDot) {
  const Expr x = of_shape({2, 3, 4});
  expect_refused<ShapeError>([&] { batch_dot(of_shape({3}), x); }, "at least two axes");
  expect_refused<ShapeError>([&] { batch_dot(x, of_shape({5, 4, 3})); }, "2 samples and y (5, 4, 3) has 5");
  expect_refused<ShapeError>([&] { batch_dot(x, of_shape({2, 3, 4})); }, "4 and 3 elements along the axes");
  expect_refused<ValueError>([&] { batch_dot(x, x, 0); }, "axis 0 holds the samples");
  expect_refused<ValueError>([&] { batch_dot(x, x, {1, -3}); }, "axis 0 holds the samples");
  expect_refused<ValueError>([&] { batch_dot(x, x, 3); }, "out of range");
  expect_refused<DTypeError>([&] { batch_dot(x, of_shape({2, 4, 3}, DType::kFloat64)); }, "float32 and float64");
}

TEST(Refusals, Dot) {
  expect_refused<ShapeError>([] { dot(of_shape({2, 3}), of_shape({4, 3})); }, "do not fit");
  expect_refused<ShapeError>([] { dot(of_shape({}), of_shape({4, 3})); }, "multiply scalars");
  expect_refused<ShapeError>([] { dot(of_shape({2, 3}), of_shape({2, 4, 3})); }, "do not fit");
}

TEST(Refusals, Bias) {
  expect_refused<ShapeError>([] { bias_add(of_shape({}), of_shape({kUnknown})); },
                             "bias of shape (?,) does not fit x of shape ()");
  expect_refused<ShapeError>(
      [] {
        bias_add(of_shape({2, 3}), of_shape({4}));
      },
      "give a vector with one value per channel");
}

// A gradient that is missing is an empty expression.
TEST(Refusals, EmptyExpressions) {
  const Expr x = of_shape({2}), none;
  for (const std::function<void()>& use : std::initializer_list<std::function<void()>>{
           [&] { none * 0.1; }, [&] { clip(none, 0, 1); }, [&] { mean(none); }, [&] { cast(none, DType::kFloat64); },
           [&] { dot(none, x); }, [&] { relu(none); }, [&] { l2_normalize(none, 0); }, [&] { Variable().state(); }})
    expect_refused<ValueError>(use, "is empty; it may be the gradient of an expression that has none");
}

TEST(Refusals, SumLike) {
  expect_refused<ShapeError>([] { sum_like(of_shape({0, 1}), of_shape({3, 1})); }, "was not broadcast from");
  expect_refused<ShapeError>([] { sum_like(of_shape({2}), of_shape({2, 2})); }, "was not broadcast from");
  EXPECT_EQ(sum_like(of_shape({2, 3}), of_shape({1, 3})).shape(), Shape({1, 3}));
}

TEST(Refusals, Rows) {
  expect_refused<ShapeError>([] { gather(of_shape({}), of_shape({2}, DType::kInt32)); }, "axis of rows");
  expect_refused<DTypeError>([] { gather(of_shape({3}), of_shape({2})); }, "float32");
}

TEST(Refusals, Subscripts) {
  const Expr x = of_shape({5, 3});
  expect_refused<ValueError>([&] { index(x, {5}); }, "5 is outside axis 0");
  expect_refused<ValueError>([&] { index(x, {0, -4}); }, "-4 is outside axis 1");
  expect_refused<ValueError>([&] { index(x, {0, 0, 0}); }, "subscripts for 3 axes");
  expect_refused<ValueError>([&] { index(x, {Ellipsis{}, Ellipsis{}}); }, "2 ellipses");
  expect_refused<ValueError>([&] { index(x, {Range{.step = 0}}); }, "the step of axis 0 is 0");
  expect_refused<DTypeError>([&] { index(x, {of_shape({5}, DType::kFloat32)}); }, "is not an index");
  expect_refused<ShapeError>([&] { index(x, {of_shape({4}, DType::kBool)}); }, "a mask of shape (4,) does not fit");
  expect_refused<ValueError>([&] { index(x, {0, of_shape({3, 2}, DType::kBool)}); }, "subscripts for 3 axes");
}

TEST(Refusals, Slices) {
  const Expr x = of_shape({5, 3});
  expect_refused<ShapeError>([&] { slice(x, {0}, {1}); }, "2 numbers in both lists");
  expect_refused<ShapeError>([&] { slice(x, {3, 0}, {3, 1}); }, "reach outside x");
  expect_refused<ValueError>([&] { slice(x, {0, 0}, {-2, 1}); }, "give numbers of elements");
}

TEST(Refusals, Shapes) {
  const Expr x = of_shape({5, 3});
  expect_refused<ShapeError>([&] { reshape(x, {4, -1}); }, "do not fit the target");
  expect_refused<ShapeError>([&] { reshape(x, {-1, -1}); }, "give all but one");
  expect_refused<ShapeError>([&] { squeeze(x, 1); }, "only an axis of one");
  expect_refused<ValueError>([&] { squeeze(x, 2); }, "out of range");
  expect_refused<ValueError>([&] { expand_dims(x, 4); }, "out of range");
  expect_refused<ShapeError>([&] { concatenate({x, of_shape({4, 4})}, 0); }, "must agree on every axis");
  expect_refused<ValueError>([&] { concatenate({}); }, "no tensors");
  expect_refused<DTypeError>([&] { concatenate({x, of_shape({5, 3}, DType::kInt32)}); }, "int32");
  expect_refused<ShapeError>([&] { stack({x, of_shape({5, 4})}); }, "must agree");
  expect_refused<ShapeError>([&] { repeat(of_shape({2, 3, 4}), 2); }, "(samples, dim)");
  expect_refused<ValueError>([&] { repeat(x, -1); }, "must not be negative");
  expect_refused<ValueError>([&] { repeat_elements(x, 2, 2); }, "out of range");
  expect_refused<ShapeError>([&] { tile(x, {1, 2, 3}); }, "3 numbers");
  expect_refused<ShapeError>([&] { permute_dimensions(x, {0, 0}); }, "once");
  expect_refused<ValueError>([&] { reverse(x, 2); }, "out of range");
  expect_refused<ValueError>([&] { one_hot(of_shape({2}, DType::kInt32), -1); }, "num_classes is -1");
  expect_refused<ValueError>([&] { arange(0, 5, 0); }, "step must not be 0");
  expect_refused<ValueError>([&] { cumsum(x, 2); }, "out of range");
  expect_refused<ValueError>([&] { sum(x, 2); }, "out of range");
  expect_refused<ValueError>([&] { sum(x, {0, -2}); }, "given twice");
}

TEST(Refusals, TensorsWithAxesWhereOneNumberIsWanted) {
  const Expr x = of_shape({5, 3}), labels = of_shape({5}, DType::kInt32);
  for (const std::int64_t length : {0, 1, 2}) {
    const Expr known = fill(Shape{length}, 2, DType::kInt64), open = of_shape({length}, DType::kInt64);
    for (const Expr& n : {known, open}) {
      expect_refused<ShapeError>([&] { one_hot(labels, n); }, "one_hot: a tensor of shape");
      expect_refused<ShapeError>([&] { repeat(x, n); }, "repeat: a tensor of shape");
      expect_refused<ShapeError>([&] { arange(n); }, "arange: a tensor of shape");
      expect_refused<ShapeError>([&] { arange(0, n, 1); }, "arange: a tensor of shape");
      expect_refused<ShapeError>([&] { index(x, {Range{.start = n}}); }, "index: a tensor of shape");
      expect_refused<ShapeError>([&] { index(x, {Range{.stop = n}}); }, "index: a tensor of shape");
    }
  }
}

constexpr std::int64_t kMany = std::int64_t{1} << 32, kEndless = std::numeric_limits<std::int64_t>::max();

TEST(Refusals, AxesBeyond32Bits) {
  const Expr x = of_shape({5, 3});
  expect_refused<ValueError>([&] { sum(x, kMany); }, "axis 4294967296 is out of range");
  expect_refused<ValueError>([&] { reverse(x, -kMany); }, "axis -4294967296 is out of range");
  expect_refused<ValueError>([&] { reverse(x, {}); }, "no axes are given");
  expect_refused<ValueError>([&] { index(shape(x), {kMany}); }, "axis 4294967296 is out of range");
  expect_refused<ValueError>([&] { index(x, {kEndless}); }, "is outside axis 0");
}

TEST(Refusals, SizesBeyondMemory) {
  const Expr x = of_shape({5, 3});
  expect_refused<ShapeError>([&] { fill({kMany, kMany}, 0); }, "fill: a tensor of shape (4294967296, 4294967296)");
  expect_refused<ShapeError>([&] { diagonal_of_ones(kMany, kMany, DType::kFloat32); }, "eye: a tensor of shape");
  expect_refused<ShapeError>([&] { tile(x, {kEndless, 1}); }, "tile: a size of 5 times");
  expect_refused<ShapeError>([&] { reshape(x, {kMany, kMany, 15}); }, "reshape: a size of");
  expect_refused<ShapeError>([&] { pad(x, {kEndless, 0}, {kEndless, 0}); }, "pad: a size of");
  expect_refused<ShapeError>([&] { slice(x, {1, 0}, {kEndless, 3}); }, "reach outside x");
  expect_refused<ShapeError>([&] { slice(of_shape({kUnknown}), {0}, {kEndless}); }, "slice: a tensor of shape");
  expect_refused<ShapeError>([&] { one_hot(of_shape({2}, DType::kInt32), kEndless); }, "one_hot: a tensor of shape");
  expect_refused<ShapeError>([&] { arange(0, 1e18, 1); }, "1e+18 elements");
  expect_refused<ShapeError>([&] { repeat(x, kEndless); }, "2^47");
  expect_refused<ShapeError>([&] { outer_sum(kMany); }, "add: a tensor of shape (4294967296, 4294967296)");
}

TEST(Refusals, StepsOverEverythingTakeOneElement) {
  const Expr x = of_shape({5});
  for (const std::int64_t step : {kEndless, -kEndless, std::numeric_limits<std::int64_t>::min() + 1})
    EXPECT_EQ(index(x, {Range{.step = step}}).shape(), (Shape{1})) << step;
  EXPECT_EQ(index(x, {Range{.start = 4, .step = -kEndless}}).shape(), (Shape{1}));
}

}  // namespace
}  // namespace syncline::testing
