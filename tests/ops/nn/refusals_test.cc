// What the ops of ops/nn.h refuse, and what they say then.
#include <gtest/gtest.h>

#include "ops/convolution.h"
#include "ops/gradients.h"
#include "ops/leaf.h"
#include "ops/nn.h"

namespace syncline {
namespace {

Expr of_shape(Shape shape, DType dtype = DType::kFloat32) {
  return apply<Placeholder>({}, {.dtype = dtype, .shape = std::move(shape)});
}

template <class E, class F>
void expect_refused(F f, const std::string& part) {
  try {
    f();
    ADD_FAILURE() << "not refused; expected a message with: " << part;
  } catch (const E& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Refusals, Activations) {
  expect_refused<DTypeError>([] { softmax(of_shape({2, 3}, DType::kInt32)); }, "softmax: x is int32");
  expect_refused<ValueError>([] { softmax(of_shape({2, 3}), 2); }, "softmax");
  expect_refused<ValueError>([] { relu(of_shape({2}), {.max_value = -1}); }, "max_value is -1");
  expect_refused<DTypeError>([] { elu(of_shape({2}, DType::kInt64)); }, "elu");
}

TEST(Refusals, Losses) {
  const Expr output = of_shape({5, 4});
  expect_refused<ValueError>([&] { categorical_crossentropy(output, output, {.axis = 2}); },
                             "categorical_crossentropy");
  expect_refused<ShapeError>([&] { sparse_categorical_crossentropy(of_shape({6}, DType::kInt64), output); }, "(6,)");
  expect_refused<DTypeError>([&] { binary_crossentropy(output, of_shape({5, 4}, DType::kInt32)); }, "int32");
  expect_refused<DTypeError>([&] { pick(output, of_shape({5}, DType::kUint8)); }, "uint8");
  expect_refused<ShapeError>([&] { in_top_k(output, of_shape({5, 1}, DType::kInt32), 1); }, "(batch, classes)");
}

TEST(Refusals, AnIndexOutsideItsLane) {
  const Expr e = pick(of_shape({2, 3}), of_shape({2}, DType::kInt32));
  const float x[6] = {};
  const std::int32_t index[2] = {0, 3};
  float y[2];
  const void* in[] = {x, index};
  void* out[] = {y};
  const Meta in_meta[] = {e.input(0).meta(), e.input(1).meta()};
  KernelArgs k;
  k.in = in, k.out = out, k.in_meta = in_meta, k.out_meta = std::span(&e.meta(), 1);
  expect_refused<ValueError>([&] { e.op().run(e.node().attrs.get(), k); }, "index 3 of lane 1 is outside [0, 3)");
}

TEST(Refusals, Normalization) {
  const Expr x = of_shape({5, 3}), v = of_shape({3});
  expect_refused<ValueError>([&] { normalize_batch_in_training(x, v, v, {}); }, "reduction_axes");
  expect_refused<ValueError>([&] { batch_normalization(x, v, v, v, v, 2); }, "batch_normalization");
  expect_refused<ShapeError>([&] { bias_add(of_shape({2, 3, 4, 5}), of_shape({4, 5})); }, "bias of shape (4, 5)");
  expect_refused<ValueError>([&] { bias_add(x, v, "first"); }, "'first'");
}

TEST(Refusals, Convolution) {
  const Expr x = of_shape({2, 5, 6, 3}), w = of_shape({3, 3, 3, 4});
  expect_refused<ShapeError>([&] { conv2d(of_shape({2, 5, 6, 2}), w); }, "2 and 3 channels");
  expect_refused<ShapeError>([&] { conv2d(of_shape({2, 5, 6}), w); }, "four dimensions");
  expect_refused<ShapeError>([&] { conv2d(of_shape({2, 2, 6, 3}), w); }, "does not fit into an image of 2");
  expect_refused<ShapeError>([&] { conv2d(x, of_shape({kUnknown, 3, 3, 4})); }, "must be known");
  expect_refused<DTypeError>([&] { conv2d(x, of_shape({3, 3, 3, 4}, DType::kFloat64)); }, "float32 and float64");
  expect_refused<ValueError>([&] { conv2d(x, w, {.strides = {0, 1}}); }, "a stride of 0");
  expect_refused<ValueError>([&] { conv2d(x, w, {.padding = "full"}); }, "'full'");
  expect_refused<ValueError>([&] { conv2d(x, w, {.data_format = "nhwc"}); }, "'nhwc'");
  expect_refused<ShapeError>([&] { conv2d_transpose(of_shape({2, 5, 6, 4}), w, {2, 7, 9, 3}); }, "7x9");
  expect_refused<ShapeError>([&] { conv2d_transpose(of_shape({2, 5, 6, 4}), w, {2, 7, 8, 5}); }, "output_shape");
}

TEST(Refusals, GradientsOfImagesOfUnknownSize) {
  const Expr x = of_shape({kUnknown, kUnknown, 6, 3}), w = of_shape({3, 3, 3, 4});
  const Expr y = conv2d(x, w);
  EXPECT_EQ(y.shape(), (Shape{kUnknown, kUnknown, 4, 4}));
  expect_refused<ShapeError>([&] { gradients(y, {x}); }, "height and width");
  const Expr pooled = pool2d(x, {2, 2}, {.pool_mode = "avg"});
  expect_refused<ShapeError>([&] { gradients(pooled, {x}); }, "height and width");
  // An unknown batch is no trouble.
  const Expr known = of_shape({kUnknown, 5, 6, 3});
  EXPECT_EQ(gradients(conv2d(known, w), {known})[0].shape(), known.shape());
}

TEST(Refusals, Pooling) {
  const Expr x = of_shape({2, 5, 6, 3});
  expect_refused<ValueError>([&] { pool2d(x, {2, 2}, {.pool_mode = "min"}); }, "'min'");
  expect_refused<ValueError>([&] { pool2d(x, {0, 2}); }, "pool_size of 0");
  expect_refused<ShapeError>([&] { pool2d(x, {6, 2}); }, "does not fit");
  expect_refused<ShapeError>(
      [&] {
        pool2d(of_shape({2, 5, 6}), {2, 2}, {.data_format = "channels_first"});
      },
      "(2, 5, 6)");
  expect_refused<DTypeError>([&] { pool2d(of_shape({2, 5, 6, 3}, DType::kInt32), {2, 2}); }, "int32");
}

}  // namespace
}  // namespace syncline
