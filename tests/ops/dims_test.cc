// Sizes computed from tensors, and the shapes that are known before a feed.
#include "syncline/dims.h"

#include <gtest/gtest.h>

#include "ops/graph/leaf.h"
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
