// Functions of images whose space is unknown while the graph and its gradients are built compute what they compute
// where everything is known.
#include <gtest/gtest.h>

#include "ops/convolution.h"
#include "ops/gradients.h"
#include "ops/math.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "runtime/function.h"
#include "runtime/session.h"

namespace syncline {
namespace {

using Build = Expr (*)(const std::vector<Expr>&);

Array numbers(const Shape& shape, int seed) {
  Array array(DType::kFloat64, shape);
  for (std::int64_t i = 0; i < shape.size(); ++i)
    array.data<double>()[i] = static_cast<double>((i * 7919 + seed * 104729) % 1009) / 500.0 - 1.0;
  return array;
}

// The value, its gradients, and the gradients of their squares.
std::vector<Array> compute(Build build, const std::vector<Array>& feeds, bool open) {
  std::vector<Expr> x;
  for (const Array& feed : feeds) {
    Shape shape = feed.shape();
    for (int axis = 0; open && axis + 1 < shape.ndim(); ++axis) shape[axis] = kUnknown;
    x.push_back(placeholder({.shape = shape, .dtype = feed.dtype()}));
  }
  std::vector<Expr> outputs{build(x)};
  Expr squares = sum(square(outputs[0]));
  for (const Expr& dx : gradients(squares, x)) {
    outputs.push_back(dx);
    squares = squares + sum(square(dx));
  }
  for (const Expr& dx : gradients(squares, x)) outputs.push_back(dx);
  return Function(x, outputs)(feeds);
}

void expect_equal(Build build, const std::vector<Shape>& shapes) {
  Session session(3);
  SessionScope scope(session);
  std::vector<Array> feeds;
  for (const Shape& shape : shapes) feeds.push_back(numbers(shape, static_cast<int>(feeds.size()) + 1));
  const std::vector<Array> known = compute(build, feeds, false), open = compute(build, feeds, true);
  ASSERT_EQ(known.size(), open.size());
  for (std::size_t i = 0; i < known.size(); ++i) {
    ASSERT_EQ(known[i].shape(), open[i].shape()) << i;
    const auto a = known[i].values<double>(), b = open[i].values<double>();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin())) << i;
  }
}

TEST(UnknownSizes, Convolution) {
  expect_equal(
      [](const std::vector<Expr>& x) {
        return conv2d(x[0], x[1], {.strides = {2, 1}, .padding = "same"});
      },
      {{2, 5, 6, 3}, {3, 2, 3, 4}});
  expect_equal([](const std::vector<Expr>& x) { return conv1d(x[0], x[1], {.padding = "causal"}); },
               {{2, 7, 3}, {3, 3, 4}});
  expect_equal([](const std::vector<Expr>& x) { return conv3d(x[0], x[1]); }, {{2, 3, 4, 3, 2}, {2, 2, 2, 2, 3}});
}

TEST(UnknownSizes, Transposed) {
  expect_equal(
      [](const std::vector<Expr>& x) {
        return conv2d_transpose(x[0], x[1], {kUnknown, kUnknown, kUnknown, 3}, {.strides = {2, 2}});
      },
      {{2, 3, 4, 5}, {3, 3, 3, 5}});
}

TEST(UnknownSizes, Depthwise) {
  expect_equal(
      [](const std::vector<Expr>& x) {
        return depthwise_conv2d(x[0], x[1], {.dilation_rate = {2, 1}});
      },
      {{2, 5, 6, 1}, {2, 2, 1, 1}});
}

TEST(UnknownSizes, Pooling) {
  expect_equal([](const std::vector<Expr>& x) { return pool2d(x[0], {2, 2}, {.padding = "same"}); }, {{2, 5, 6, 3}});
  expect_equal(
      [](const std::vector<Expr>& x) {
        return pool3d(x[0], {2, 2, 2}, {.pool_mode = "avg"});
      },
      {{2, 3, 4, 5, 2}});
}

TEST(UnknownSizes, Resizing) {
  expect_equal([](const std::vector<Expr>& x) { return resize_images(x[0], 2, 3, "channels_last", "bilinear"); },
               {{2, 3, 4, 2}});
  expect_equal([](const std::vector<Expr>& x) { return resize_volumes(x[0], 2, 1, 3, "channels_last"); },
               {{2, 2, 3, 2, 2}});
}

TEST(UnknownSizes, LocalConvolution) {
  expect_equal(
      [](const std::vector<Expr>& x) {
        return local_conv1d(x[0], reshape(x[1], {4, 6, 3}), 3, 2);
      },
      {{2, 10, 2}, {4, 6, 3}});
}

}  // namespace
}  // namespace syncline
