// Arguments that the ops of syncline/backend/nn.h reject, and the error messages.
#include <gtest/gtest.h>

#include "ops/graph/leaf.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/nn.h"
#include "tests/ops/refusal.h"

namespace syncline {
namespace {

Expr of_shape(Shape shape, DType dtype = DType::kFloat32) {
  return apply<Placeholder>({}, {.dtype = dtype, .shape = std::move(shape)});
}

using testing::expect_refused;

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
  expect_refused<DTypeError>([&] { gather_along_axis(output, of_shape({5}, DType::kUint8)); }, "uint8");
  expect_refused<ShapeError>([&] { in_top_k(output, of_shape({5, 1}, DType::kInt32), 1); }, "(batch, classes)");
}

TEST(Refusals, AnIndexOutsideItsLane) {
  const Expr e = gather_along_axis(of_shape({2, 3}), of_shape({2}, DType::kInt32)).input(1);
  const std::int32_t index[2] = {0, 3};
  std::int32_t y[2];
  const void* in[] = {index};
  void* out[] = {y};
  KernelArgs k;
  k.in = in, k.out = out, k.in_meta = k.out_meta = std::span(&e.meta(), 1);
  const auto run = [&] { e.op().run(e.node().attrs.get(), k); };
  expect_refused<ValueError>(run, "gather_along_axis: index 3 at position 1 of the indices is outside [0, 3)");
  k.slice = {.axis = 0, .begin = 4, .size = 6};  // a rank's own rows
  expect_refused<ValueError>(run, "index 3 at position 5 of");
}

TEST(Refusals, Normalization) {
  const Expr x = of_shape({5, 3}), v = of_shape({3});
  expect_refused<ValueError>([&] { normalize_batch_in_training(x, v, v, Axes()); }, "reduction_axes");
  expect_refused<ValueError>([&] { normalize_batch_in_training(x, v, v, std::int64_t{1} << 32); }, "out of range");
  expect_refused<ValueError>([&] { batch_normalization(x, v, v, v, v, 2); }, "batch_normalization");
}

}  // namespace
}  // namespace syncline
