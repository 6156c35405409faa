// Sizes computed from tensors, and the shapes that are known before a feed.
#include "syncline/dims.h"

#include <gtest/gtest.h>

#include "ops/graph/leaf.h"
#include "syncline/backend/control.h"
#include "syncline/backend/core.h"
#include "syncline/backend/function.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/session.h"
#include "tests/ops/refusal.h"

namespace syncline::testing {
namespace {

class DimsTest : public ::testing::Test {
 protected:
  Session session_{3};
  SessionScope scope_{session_};
};

TEST_F(DimsTest, WhatIsKnownBeforehand) {
  const Expr x = placeholder({.shape = {kUnknown, 4}});
  const Dim n = dim(x, 0);
  EXPECT_FALSE(n.is_number());
  EXPECT_TRUE(dim(x, -1).is_number());
  EXPECT_EQ(reshape(x, {n, 2, 2}).shape(), (Shape{kUnknown, 2, 2}));
  EXPECT_EQ(tile(x, {n, 3}).shape(), (Shape{kUnknown, 12}));
  EXPECT_EQ(fill({n, 3}, 1).shape(), (Shape{kUnknown, 3}));
  EXPECT_EQ(slice(x, {n, 1}, {-1, -1}).shape(), (Shape{kUnknown, 3}));
  EXPECT_EQ(one_hot(cast(x, DType::kInt32), n).shape(), (Shape{kUnknown, 4, kUnknown}));
  EXPECT_EQ(arange(n).shape(), (Shape{kUnknown}));
  EXPECT_EQ(dims_of(x).numbers(), x.shape());
}

TEST_F(DimsTest, ConstantsAreNumbers) {
  const Dims dims{constant(Array::from<std::int64_t>(Shape{2}, {2, 3})), scalar(4, DType::kInt32)};
  EXPECT_FALSE(dims.has_tensors());
  EXPECT_EQ(dims.numbers(), (Shape{2, 3, 4}));
}

TEST_F(DimsTest, KnownElementsOfShapes) {
  const Expr x = placeholder({.shape = {kUnknown, 4, 6}}), y = placeholder({.shape = {kUnknown, 24}});
  const Expr sizes = shape(x), batch = slice_axis(sizes, 0, 0, 1);
  EXPECT_EQ(reshape(y, sizes).shape(), (Shape{kUnknown, 4, 6}));
  EXPECT_EQ(reshape(y, cast(sizes, DType::kInt64)).shape(), (Shape{kUnknown, 4, 6}));
  EXPECT_EQ(reshape(y, identity(sizes)).shape(), (Shape{kUnknown, 4, 6}));
  EXPECT_EQ(fill(slice_axis(sizes, 0, 1, 2), 1).shape(), (Shape{4, 6}));
  EXPECT_EQ(fill(slice(sizes, {1}, {-1}), 1).shape(), (Shape{4, 6}));
  const Expr joined = concatenate({batch, constant(Array::from<std::int32_t>(Shape{2}, {-1, 3}))}, 0);
  EXPECT_EQ(reshape(y, joined).shape(), (Shape{kUnknown, kUnknown, 3}));
  const Expr stacked = stack({squeeze(batch, 0), scalar(24, DType::kInt32)});
  EXPECT_EQ(reshape(x, stacked).shape(), (Shape{kUnknown, 24}));
  EXPECT_TRUE(Dims(slice_axis(sizes, 0, 1, 1)).numbers().is_known());
  EXPECT_EQ(Dims(slice_axis(sizes, 0, 0, 0)).size(), 0);
  const Expr large = constant(Array::scalar<std::int64_t>((std::int64_t{1} << 32) + 2));
  EXPECT_FALSE(Dims(cast(large, DType::kInt32)).numbers().is_known());  // 2 after the cast
  const Expr wrapped = cast(fill({1}, 300, DType::kUint8), DType::kInt32);
  EXPECT_EQ(fill(wrapped, 1).shape(), eval(fill(wrapped, 1)).shape());

  Function f({x, y}, {reshape(y, sizes), reshape(y, joined), reshape(x, stacked)});
  const Array images(DType::kFloat32, {2, 4, 6}), rows(DType::kFloat32, {2, 24});
  const std::vector<Array> results = f({images, rows});
  EXPECT_EQ(results[0].shape(), (Shape{2, 4, 6}));
  EXPECT_EQ(results[1].shape(), (Shape{2, 8, 3}));
  EXPECT_EQ(results[2].shape(), (Shape{2, 24}));
  expect_refused<ShapeError>([&] { f({Array(DType::kFloat32, {3, 4, 6}), rows}); }, "reshape: (2, 24) has 48 elements");
}

// Each vector reads the one before twice, so the number of paths to the shape doubles.
TEST_F(DimsTest, ElementsThatAreReadOftenAreFoundOnce) {
  const Expr x = placeholder({.shape = {kUnknown, 4, 6}});
  Expr sizes = slice_axis(shape(x), 0, 1, 2);
  for (int i = 0; i < 100; ++i) sizes = concatenate({slice_axis(sizes, 0, 1, 1), slice_axis(sizes, 0, 0, 1)}, 0);
  EXPECT_EQ(fill(sizes, 1).shape(), (Shape{4, 6}));
  for (int i = 0; i < 2000; ++i) sizes = identity(sizes);
  EXPECT_EQ(fill(sizes, 1).shape(), (Shape{kUnknown, kUnknown}));  // too far
  Function f({x}, {fill(sizes, 1)});
  EXPECT_EQ(f({Array(DType::kFloat32, {1, 4, 6})})[0].shape(), (Shape{4, 6}));
}

TEST_F(DimsTest, AVectorWithAKnownElementInALoop) {
  const Expr n = placeholder({.shape = {1}, .dtype = DType::kInt32}), x = placeholder({.shape = {2, 3, 4}});
  const Expr mixed = concatenate({n, slice_axis(shape(x), 0, 2, 1)}, 0);
  const RnnStep step = [&](const Expr& e, const std::vector<Expr>& s) {
    return std::pair{s[0] + sum(fill(mixed, 1)) + sum(e), std::vector<Expr>{s[0] + 1.0}};
  };
  const Variable w = variable(Array(DType::kFloat32, {2, 4}));
  const Expr y = rnn(step, x, {zeros_like(slice_axis(squeeze(slice_axis(x, 1, 0, 1), 1), 1, 0, 1))}, {}).last_output;
  const Expr z = reshape(w, concatenate({slice_axis(shape(w), 0, 1, 1), n}, 0));
  Function f({n, x}, {y, gradients(sum(square(z + 1.0)), {&w, 1})[0]});
  const std::vector<Array> results = f({Array::from<std::int32_t>(Shape{1}, {2}), Array(DType::kFloat32, {2, 3, 4})});
  EXPECT_EQ(results[0].values<float>()[0], 2 * 4 + 2);  // the last of three steps
  EXPECT_EQ(results[1].values<float>()[0], 2);
}

TEST_F(DimsTest, ElementsThatFollowFromValuesAreUnknown) {
  const Expr n = placeholder({.shape = {2}, .dtype = DType::kInt32}), x = placeholder({.shape = {kUnknown, 4}});
  EXPECT_EQ(fill(n, 1).shape(), (Shape{kUnknown, kUnknown}));
  const Expr mixed = concatenate({n, slice_axis(shape(x), 0, 1, 1)}, 0);
  EXPECT_EQ(fill(mixed, 1).shape(), (Shape{kUnknown, kUnknown, 4}));
  Function f({n, x}, {fill(mixed, 1)});
  for (const std::int32_t size : {3, 0})
    EXPECT_EQ(f({Array::from<std::int32_t>(Shape{2}, {size, 2}), Array(DType::kFloat32, {1, 4})})[0].shape(),
              (Shape{size, 2, 4}));
}

TEST_F(DimsTest, AFedIntegerDecidesASize) {
  const Expr n = placeholder({.shape = {}, .dtype = DType::kInt64}),
             other = placeholder({.shape = {}, .dtype = DType::kInt32});
  Function f({n, other}, {arange(n + 1.0), cast(other, DType::kFloat32)});
  for (const std::int64_t size : {3, 5, 3}) {
    const auto result = f({Array::scalar<std::int64_t>(size), Array::scalar<std::int32_t>(9)});
    EXPECT_EQ(result[0].shape(), (Shape{size + 1}));
    EXPECT_EQ(result[1].item(), 9);
  }
}

TEST_F(DimsTest, AValueDecidesASize) {
  const Expr x = placeholder({.shape = {3}, .dtype = DType::kInt32});
  Function f({x}, {fill({sum(x), 2}, 1)});
  for (const std::int32_t last : {3, 0, 3})
    EXPECT_EQ(f({Array::from<std::int32_t>(Shape{3}, {1, 2, last})})[0].shape(), (Shape{3 + last, 2}));
  expect_refused<ShapeError>([&] { f({Array::from<std::int32_t>(Shape{3}, {1, 2, -4})}); }, "fill: the shape (?, 2)");
  const Variable v = variable(Array::scalar<std::int32_t>(2));
  EXPECT_EQ(eval(fill({v.expr(), 2}, 1)).shape(), (Shape{2, 2}));
}

TEST_F(DimsTest, SizesOfAnotherShapeAreChecked) {
  const Expr x = placeholder({.shape = {kUnknown, 4}});
  Function f({x}, {reshape(x, {dim(x, 0), 3})});
  expect_refused<ShapeError>([&] { f({Array(DType::kFloat32, {2, 4})}); }, "reshape: (2, 4) has 8 elements");
}

TEST_F(DimsTest, WhatIsNoSize) {
  expect_refused<DTypeError>([] { reshape(fill({2}, 1), {placeholder({.shape = {}})}); }, "float32");
  expect_refused<ShapeError>([] { reshape(fill({2}, 1), placeholder({.shape = {kUnknown}, .dtype = DType::kInt32})); },
                             "whose length is known");
  expect_refused<ShapeError>([] { fill({2, -1}, 1); }, "negative or unknown");
}

}  // namespace
}  // namespace syncline::testing
