// Functions of images: a graph and its gradients built with unknown sizes compute the same values as with known sizes.
#include <gtest/gtest.h>

#include <limits>

#include "syncline/backend/convolution.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/session.h"

namespace syncline {
namespace {

using Build = Expr (*)(const std::vector<Expr>&);

Array numbers(const Shape& shape, int seed) {
  Array array(DType::kFloat64, shape);
  for (std::int64_t i = 0; i < shape.size(); ++i)
    array.data<double>()[i] = static_cast<double>((i * 7919 + seed * 104729) % 1009) / 500.0 - 1.0;
  return array;
}

// y, the gradients of sum(y^2), and the gradients of sum(y^2) plus the sums of the squared first gradients.
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

// A fed image that is up to one stride smaller than the window has no positions; its gradients are zeros.
void expect_no_positions(Build build, const Shape& image, const std::vector<Shape>& others, const Shape& wanted) {
  Session session(3);
  SessionScope scope(session);
  std::vector<Array> feeds{numbers(image, 1)};
  for (const Shape& shape : others) feeds.push_back(numbers(shape, 2));
  const std::vector<Array> got = compute(build, feeds, true);
  EXPECT_EQ(got[0].shape(), wanted);
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    EXPECT_EQ(got[i + 1].shape(), feeds[i].shape());
    for (const double d : got[i + 1].values<double>()) EXPECT_EQ(d, 0) << i;
  }
}

TEST(UnknownSizes, AWindowLargerThanTheImageThatIsFed) {
  const Build conv = [](const std::vector<Expr>& x) { return conv2d(x[0], x[1]); };
  const Build strided = [](const std::vector<Expr>& x) { return conv2d(x[0], x[1], {.strides = {3, 3}}); };
  const Build wide = [](const std::vector<Expr>& x) { return depthwise_conv2d(x[0], x[1]); };
  const Build largest = [](const std::vector<Expr>& x) { return pool2d(x[0], {3, 3}); };
  const Build mean = [](const std::vector<Expr>& x) { return pool3d(x[0], {2, 3, 3}, {.pool_mode = "avg"}); };
  expect_no_positions(conv, {2, 2, 5, 3}, {{3, 3, 3, 4}}, {2, 0, 3, 4});
  expect_no_positions(conv, {2, 2, 5, 20}, {{3, 3, 20, 32}}, {2, 0, 3, 32});
  expect_no_positions(conv, {2, 5, 2, 1}, {{3, 3, 1, 4}}, {2, 3, 0, 4});
  expect_no_positions(strided, {2, 1, 5, 3}, {{4, 4, 3, 4}}, {2, 0, 1, 4});
  expect_no_positions(wide, {2, 5, 2, 1}, {{3, 3, 1, 1}}, {2, 3, 0, 1});
  expect_no_positions(largest, {2, 2, 5, 3}, {}, {2, 0, 3, 3});
  expect_no_positions(mean, {2, 1, 5, 5, 3}, {}, {2, 0, 3, 3, 3});
}

// The first and last row of the kernel see only padding: an infinite image must not make NaN there.
TEST(UnknownSizes, TapsOutsideTheImageHaveNoGradient) {
  Session session(3);
  SessionScope scope(session);
  const Expr x = placeholder({.shape = {1, 1, 1, 4, 1}}), w = placeholder({.shape = {1, 3, 1, 1, 1}});
  const Expr y = conv3d_transpose(x, w, {1, 1, 1, 4, 1}, {.padding = "same"});
  Function f({x, w}, {gradients(sum(y), {w})[0]});
  const float infinity = std::numeric_limits<float>::infinity();
  const Array dw = f({Array::from<float>({1, 1, 1, 4, 1}, {1, infinity, 2, 3}), Array(DType::kFloat32, w.shape())})[0];
  EXPECT_EQ(std::vector<float>(dw.values<float>().begin(), dw.values<float>().end()),
            (std::vector<float>{0, infinity, 0}));
}

TEST(UnknownSizes, ButNotAMuchLargerOne) {
  Session session(3);
  SessionScope scope(session);
  const Expr x = placeholder({.shape = {2, kUnknown, 5, 3}}), w = placeholder({.shape = {3, 3, 3, 4}});
  Function f({x, w}, {conv2d(x, w)});
  EXPECT_THROW(f({Array(DType::kFloat32, {2, 1, 5, 3}), Array(DType::kFloat32, {3, 3, 3, 4})}), ShapeError);
  EXPECT_THROW(conv2d(placeholder({.shape = {2, 2, 5, 3}}), w), ShapeError);
  EXPECT_THROW(pool2d(placeholder({.shape = {2, 2, 5, 3}}), {3, 3}), ShapeError);
}

}  // namespace
}  // namespace syncline
