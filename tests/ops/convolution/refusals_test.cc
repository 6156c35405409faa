// Arguments that convolution, pooling, padding and resizing reject, and the error messages.
#include "ops/graph/leaf.h"
#include "syncline/backend/convolution.h"
#include "syncline/backend/shape.h"
#include "tests/ops/refusal.h"

namespace syncline {
namespace {

using testing::expect_refused;

Expr of_shape(Shape shape, DType dtype = DType::kFloat32) {
  return apply<Placeholder>({}, {.dtype = dtype, .shape = std::move(shape)});
}

// The error of every function for an unknown data_format, which `call` takes.
template <class F>
void expect_data_format(F call) {
  expect_refused<ValueError>([&] { call("nhwc"); }, "unknown data_format 'nhwc'");
}

TEST(ConvolutionRefusals, Conv1d) {
  const Expr x = of_shape({2, 7, 3}), w = of_shape({3, 3, 4});
  expect_data_format([&](const char* format) { conv1d(x, w, {.data_format = format}); });
  expect_refused<ValueError>([&] { conv1d(x, w, {.padding = "full"}); }, "'valid', 'same' or 'causal'");
  expect_refused<ValueError>([&] { conv1d(x, w, {.strides = 0}); }, "a stride of 0");
  expect_refused<ValueError>([&] { conv1d(x, w, {.dilation_rate = -1}); }, "a dilation rate of -1");
  expect_refused<ShapeError>([&] { conv1d(x, of_shape({3, 2, 4})); }, "conv1d: an image of shape (2, 7, 3)");
  expect_refused<ShapeError>([&] { conv1d(of_shape({2, 7}), w); }, "needs 3 dimensions");
  expect_refused<ShapeError>([&] { conv1d(x, of_shape({3, 4})); }, "the kernel has the shape (3, 4)");
  expect_refused<ShapeError>([&] { conv1d(x, w, {.dilation_rate = 4}); }, "spans 9");
}

TEST(ConvolutionRefusals, Conv2d) {
  const Expr x = of_shape({2, 5, 6, 3}), w = of_shape({3, 3, 3, 4});
  expect_refused<ShapeError>([&] { conv2d(of_shape({2, 5, 6, 2}), w); }, "channels: 2 and 3");
  expect_refused<ShapeError>([&] { conv2d(of_shape({2, 5, 6}), w); }, "conv2d: x has the shape (2, 5, 6)");
  expect_refused<ShapeError>([&] { conv2d(of_shape({2, 2, 6, 3}), w); }, "does not fit into an image of 2");
  expect_refused<ShapeError>([&] { conv2d(x, of_shape({0, 3, 3, 4})); }, "1 or more");
  expect_refused<DTypeError>([&] { conv2d(x, of_shape({3, 3, 3, 4}, DType::kFloat64)); }, "float32 and float64");
  expect_refused<DTypeError>([&] { conv2d(of_shape({2, 5, 6, 3}, DType::kInt32), w); }, "int32");
  expect_refused<ValueError>([&] { conv2d(x, w, {.strides = {0, 1}}); }, "a stride of 0");
  expect_refused<ValueError>([&] { conv2d(x, w, {.padding = "causal"}); }, "unknown padding 'causal'");
  expect_data_format([&](const char* format) { conv2d(x, w, {.data_format = format}); });
}

TEST(ConvolutionRefusals, Conv3d) {
  const Expr x = of_shape({2, 4, 5, 6, 3}), w = of_shape({2, 2, 2, 3, 4});
  expect_data_format([&](const char* format) { conv3d(x, w, {.data_format = format}); });
  expect_refused<ValueError>([&] { conv3d(x, w, {.padding = ""}); }, "unknown padding ''");
  expect_refused<ShapeError>([&] { conv3d(of_shape({2, 4, 5, 3}), w); }, "needs 5 dimensions");
  expect_refused<ShapeError>([&] { conv3d(x, of_shape({2, 2, 2, 6, 4})); }, "conv3d: an image");
}

TEST(ConvolutionRefusals, Transposed) {
  const Expr x = of_shape({2, 5, 6, 4}), w = of_shape({3, 3, 3, 4});
  expect_refused<ShapeError>([&] { conv2d_transpose(x, w, {2, 7, 9, 3}); }, "has 7 positions on axis 2");
  expect_refused<ShapeError>([&] { conv2d_transpose(x, w, {2, 7, 8, 5}); }, "output_shape is (2, 7, 8, 5)");
  expect_refused<ShapeError>([&] { conv2d_transpose(x, w, {7, 8}); }, "does not have 4 dimensions");
  expect_refused<ShapeError>([&] { conv2d_transpose(of_shape({2, 5, 6, 3}), w, {2, 7, 8, 3}); }, "channels: 3 and 4");
  expect_refused<ValueError>([&] { conv2d_transpose(x, w, {2, 7, 8, 3}, {.padding = "full"}); }, "'full'");
  expect_data_format([&](const char* format) { conv2d_transpose(x, w, {2, 7, 8, 3}, {.data_format = format}); });
  const Expr volume = of_shape({2, 3, 4, 5, 4}), w3 = of_shape({2, 2, 2, 3, 4});
  expect_data_format([&](const char* f) { conv3d_transpose(volume, w3, {2, 4, 5, 6, 3}, {.data_format = f}); });
  expect_refused<ShapeError>([&] { conv3d_transpose(volume, w3, {2, 4, 5, 3}); }, "does not have 5 dimensions");
}

TEST(ConvolutionRefusals, DepthwiseAndSeparable) {
  const Expr x = of_shape({2, 5, 6, 3}), w = of_shape({3, 3, 3, 2}), p = of_shape({1, 1, 6, 4});
  expect_data_format([&](const char* format) { depthwise_conv2d(x, w, {.data_format = format}); });
  expect_refused<ValueError>([&] { depthwise_conv2d(x, w, {.padding = "full"}); }, "depthwise_conv2d: unknown padding");
  expect_refused<ShapeError>([&] { depthwise_conv2d(x, of_shape({3, 3, 2, 2})); }, "channels: 3 and 2");
  expect_refused<ShapeError>([&] { depthwise_conv2d(x, of_shape({3, 3, 3})); }, "needs 4 dimensions");
  expect_data_format([&](const char* format) { separable_conv2d(x, w, p, {.data_format = format}); });
  expect_refused<ShapeError>([&] { separable_conv2d(x, w, of_shape({2, 1, 6, 4})); }, "the first 2 are 1");
  expect_refused<ShapeError>([&] { separable_conv2d(x, w, of_shape({1, 1, 3, 4})); }, "channels: 6 and 3");
  const Expr line = of_shape({2, 5, 3}), w1 = of_shape({3, 3, 2}), p1 = of_shape({1, 6, 4});
  expect_data_format([&](const char* format) { separable_conv1d(line, w1, p1, {.data_format = format}); });
  expect_refused<ValueError>([&] { separable_conv1d(line, w1, p1, {.padding = "causal"}); }, "'causal'");
}

TEST(ConvolutionRefusals, Local) {
  const Expr line = of_shape({2, 7, 3}), image = of_shape({2, 5, 6, 3});
  const Expr w1 = of_shape({5, 9, 4}), w2 = of_shape({12, 27, 4});
  expect_data_format([&](const char* format) { local_conv1d(line, w1, 3, 1, format); });
  expect_data_format([&](const char* format) { local_conv2d(image, w2, {3, 3}, {1, 1}, {3, 4}, format); });
  expect_refused<ShapeError>([&] { local_conv1d(line, w1, 3, 2); }, "span 11 elements, but the image has 7");
  expect_refused<ShapeError>([&] { local_conv1d(line, w1, 2, 1); }, "a kernel of shape (5, 9, 4)");
  expect_refused<ShapeError>([&] { local_conv1d(line, of_shape({kUnknown, 9, 4}), 3, 1); }, "the first of them known");
  expect_refused<ValueError>([&] { local_conv1d(line, w1, 0, 1); }, "a kernel_size of 0");
  expect_refused<ShapeError>([&] { local_conv2d(image, w2, {3, 3}, {1, 1}, {3, 3}); }, "9 positions");
  expect_refused<ShapeError>([&] { local_conv2d(line, w2, {3, 3}, {1, 1}, {3, 4}); }, "needs 4 dimensions");
  expect_refused<ShapeError>(
      [&] {
        local_conv2d(image, of_shape({12, 26, 4}), {3, 3}, {1, 1}, {3, 4}, "channels_first");
      },
      "a multiple of the 9 places");
}

TEST(ConvolutionRefusals, Pooling) {
  const Expr x = of_shape({2, 5, 6, 3}), volume = of_shape({2, 4, 5, 6, 3});
  expect_refused<ValueError>([&] { pool2d(x, {2, 2}, {.pool_mode = "min"}); }, "'min'");
  expect_refused<ValueError>([&] { pool3d(volume, {2, 2, 2}, {.pool_mode = "mean"}); }, "'max' or 'avg'");
  expect_refused<ValueError>([&] { pool2d(x, {0, 2}); }, "pool_size of 0");
  expect_refused<ValueError>([&] { pool3d(volume, {2, 2, 2}, {.strides = {1, 0, 1}}); }, "a stride of 0");
  expect_refused<ShapeError>([&] { pool2d(x, {6, 2}); }, "does not fit");
  expect_refused<ShapeError>([&] { pool3d(x, {2, 2, 2}); }, "needs 5 dimensions");
  expect_refused<ShapeError>(
      [&] {
        pool2d(of_shape({2, 5, 6}), {2, 2}, {.data_format = "channels_first"});
      },
      "(2, 5, 6)");
  expect_refused<DTypeError>([&] { pool2d(of_shape({2, 5, 6, 3}, DType::kInt32), {2, 2}); }, "int32");
  expect_refused<ValueError>([&] { pool2d(x, {2, 2}, {.padding = "half"}); }, "'half'");
  expect_data_format([&](const char* format) { pool2d(x, {2, 2}, {.data_format = format}); });
  expect_data_format([&](const char* format) { pool3d(volume, {2, 2, 2}, {.data_format = format}); });
}

TEST(ConvolutionRefusals, BiasAdd) {
  const Expr x = of_shape({2, 3, 4, 5});
  expect_refused<ShapeError>([&] { bias_add(x, of_shape({4, 5})); }, "bias of shape (4, 5)");
  expect_refused<ShapeError>([&] { bias_add(x, of_shape({4})); }, "bias of shape (4,)");
  expect_refused<ShapeError>([&] { bias_add(x, of_shape({5}), "channels_first"); }, "bias of shape (5,)");
  expect_refused<ShapeError>([&] { bias_add(x, of_shape({1})); }, "bias of shape (1,)");
  expect_refused<ShapeError>([&] { bias_add(x, of_shape({})); }, "bias of shape ()");
  expect_data_format([&](const char* format) { bias_add(x, of_shape({5}), format); });
}

TEST(ConvolutionRefusals, PaddingAndResizing) {
  const Expr image = of_shape({2, 3, 4, 5}), volume = of_shape({2, 3, 4, 5, 6});
  expect_refused<ShapeError>([&] { temporal_padding(image); }, "temporal_padding: x has the shape (2, 3, 4, 5)");
  expect_refused<ShapeError>([&] { spatial_2d_padding(volume); }, "needs 4 dimensions");
  expect_refused<ShapeError>([&] { spatial_3d_padding(image); }, "needs 5 dimensions");
  expect_refused<ValueError>([&] { spatial_3d_padding(volume, {{{1, 1}, {-1, 0}, {1, 1}}}); }, "must not be negative");
  expect_data_format([&](const char* f) { spatial_2d_padding(image, {{{1, 1}, {1, 1}}}, f); });
  expect_data_format([&](const char* f) { spatial_3d_padding(volume, {{{1, 1}, {1, 1}, {1, 1}}}, f); });
  expect_data_format([&](const char* f) { resize_images(image, 2, 2, f); });
  expect_data_format([&](const char* f) { resize_volumes(volume, 2, 2, 2, f); });
  expect_refused<ValueError>([&] { resize_images(image, 2, 2, "channels_last", "cubic"); }, "'cubic'");
  expect_refused<ValueError>([&] { resize_images(image, 2, 0, "channels_last"); }, "a factor of 0");
  expect_refused<ValueError>([&] { resize_volumes(volume, -1, 2, 2, "channels_last"); }, "a factor of -1");
  expect_refused<ShapeError>([&] { resize_images(volume, 2, 2, "channels_last"); }, "resize_images: x has the shape");
  expect_refused<ShapeError>([&] { resize_volumes(image, 2, 2, 2, "channels_last"); }, "resize_volumes");
  expect_refused<DTypeError>(
      [] {
        resize_images(of_shape({2, 3, 4, 5}, DType::kInt32), 2, 2, "channels_last", "bilinear");
      },
      "int32");
}

}  // namespace
}  // namespace syncline
