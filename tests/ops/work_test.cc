// OpDef::work: the operations and bytes of one call, for profiles.
#include <gtest/gtest.h>

#include <vector>

#include "ops/graph/op.h"
#include "syncline/backend/convolution.h"
#include "syncline/backend/core.h"
#include "syncline/backend/function.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

constexpr double kFloat = 4, kIndex = 4;

Expr floats(Shape shape) { return placeholder({.shape = std::move(shape), .dtype = DType::kFloat32}); }
Expr indices(Shape shape) { return placeholder({.shape = std::move(shape), .dtype = DType::kInt32}); }

void expect_work(const Expr& y, std::string_view op, double flops, double bytes) {
  EXPECT_EQ(y.op().name, op);
  std::vector<Meta> in;
  for (const Expr& input : y.node().inputs) in.push_back(input.meta());
  const Work work = y.op().work(y.node().attrs.get(), in, y.node().outputs);
  EXPECT_EQ(work.flops, flops) << op;
  EXPECT_EQ(work.bytes, bytes) << op;
}

// Rows of a large table: only those that the indices name.
TEST(Work, OfTables) {
  const Expr table = floats({100000, 8}), rows = floats({50, 8});
  expect_work(gather(table, indices({50})), "gather", 0, 2 * kFloat * 400 + kIndex * 50);
  expect_work(scatter_sub(table, rows, indices({50})), "scatter_sub", 400, 3 * kFloat * 400 + kIndex * 50);
}

// They read what they write.
TEST(Work, OfSlices) {
  const Expr x = floats({1000, 60});
  expect_work(slice(x, {10, 0}, {20, 30}), "slice", 0, 2 * kFloat * 600);
  expect_work(index(x, {Range{.start = 0, .stop = 100, .step = 10}}), "strided_slice", 0, 2 * kFloat * 600);
  expect_work(gather_along_axis(x, indices({1000})), "gather_along_axis", 0, (2 * kFloat + kIndex) * 1000);
}

TEST(Work, OfOpsThatMoveWholeOperands) {
  const Expr x = floats({10, 6});
  expect_work(pad(x, {0, 2}, {0, 2}), "pad", 0, kFloat * (60 + 100));
  expect_work(concatenate({x, x}, 0), "concatenate", 0, 2 * kFloat * 120);
  expect_work(permute_dimensions(x, {1, 0}), "permute_dimensions", 0, 2 * kFloat * 60);
  expect_work(reverse(x, {1}), "reverse", 0, 2 * kFloat * 60);
  const Meta value{DType::kFloat32, {10, 6}};
  const std::vector<Meta> in{value, value, {DType::kBool, {}}}, out{value};
  const NoAttrs none;
  const Work chosen = find_op("choose")->work(&none, in, out);
  EXPECT_EQ(chosen.flops, 0);
  EXPECT_EQ(chosen.bytes, 2 * kFloat * 60);
}

TEST(Work, OfShapes) { expect_work(shape(floats({1000, 60})), "shape", 0, 2 * sizeof(std::int32_t)); }

TEST(Work, OfProducts) {
  expect_work(dot(floats({7, 11}), floats({11, 13})), "dot", 2 * 7 * 11 * 13, kFloat * (77 + 143 + 91));
  // 5 products of 7 x 11 and 11 x 13.
  expect_work(batch_dot(floats({5, 7, 11}), floats({5, 11, 13}), {2, 1}), "batch_dot", 5 * 2 * 7 * 11 * 13,
              kFloat * 5 * (77 + 143 + 91));
  // Each of 2 * 8 * 9 * 16 results is a sum of 3 * 3 * 4 products.
  const Expr y = conv2d(floats({2, 10, 11, 4}), floats({3, 3, 4, 16}), {.data_format = "channels_last"});
  expect_work(y, "conv", 2.0 * 2304 * 36, kFloat * (2 * 110 * 4 + 9 * 64 + 2304));
}

// 4 x 9 tiles of 4 x 4 outputs: 36 products instead of 144, and the transforms.
TEST(Work, OfWinogradsConvolution) {
  const Expr y = conv2d(floats({4, 14, 14, 64}), floats({3, 3, 64, 128}), {.data_format = "channels_last"});
  const std::vector<Meta> in{y.input(0).meta(), y.input(1).meta()};
  const Work work = y.op().work(y.node().attrs.get(), in, y.node().outputs);
  const double products = 2.0 * 36 * 4 * 9 * 64 * 128;
  EXPECT_GT(work.flops, products);
  EXPECT_LT(work.flops, 1.2 * products);
}

}  // namespace
}  // namespace syncline
