// Dtypes that functions reject, with the remedy that the error names, and dtypes of results.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/graph/leaf.h"
#include "syncline/backend/core.h"
#include "syncline/backend/function.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/error.h"
#include "syncline/session.h"
#include "tests/ops/refusal.h"

namespace syncline::testing {
namespace {

class Dtypes : public ::testing::Test {
 protected:
  static Expr of(DType dtype, Shape shape = {2, 3}) { return placeholder({.shape = std::move(shape), .dtype = dtype}); }

  Session session_{3};
  SessionScope scope_{session_};
  Expr int32_ = of(DType::kInt32), float32_ = of(DType::kFloat32), float16_ = of(DType::kFloat16),
       bool_ = of(DType::kBool);
};

TEST_F(Dtypes, OperandsOfTwoDtypesAreRefused) {
  expect_refused<DTypeError>([&] { add(int32_, float32_); }, "operands of int32 and float32; cast one of them");
  expect_refused<DTypeError>([&] { mul(float16_, float32_); }, "operands of float16 and float32; cast one of them");
  expect_refused<DTypeError>([&] { div(int32_, float32_); }, "cast one of them");
  expect_refused<DTypeError>([&] { maximum(int32_, float32_); }, "cast one of them");
  expect_refused<DTypeError>([&] { equal(int32_, float32_); }, "cast one of them");
  expect_refused<DTypeError>([&] { concatenate({int32_, float32_}); }, "cast");
  expect_refused<DTypeError>([&] { dot(int32_, of(DType::kFloat32, {3, 2})); }, "cast one of them");
  expect_refused<DTypeError>([&] { batch_dot(int32_, float32_); }, "cast one of them");
  expect_refused<DTypeError>([&] { select(bool_, int32_, float32_); }, "cast one of them");
}

TEST_F(Dtypes, FractionsForIntegersAreRefused) {
  expect_refused<DTypeError>([&] { static_cast<void>(int32_ + 2.5); },
                             "the number 2.5 cannot be used with a tensor of int32; cast the tensor");
  expect_refused<DTypeError>([&] { pow(int32_, 0.5); }, "the number 0.5 cannot be used with a tensor of int32");
  expect_refused<DTypeError>([&] { clip(int32_, 0.5, 2); }, "the number 0.5");
  expect_refused<DTypeError>([&] { scalar_like(INFINITY, int32_); },
                             "the number inf cannot be used with a tensor of int32");
  EXPECT_EQ((int32_ + 2.0).dtype(), DType::kInt32);
}

TEST_F(Dtypes, NumbersTakeTheTensorsDtype) {
  EXPECT_EQ((float16_ + 0.1).dtype(), DType::kFloat16);
  EXPECT_EQ(pow(float16_, 2).dtype(), DType::kFloat16);
  EXPECT_EQ(eval(constant(Array(DType::kFloat16, {})) + 1e6).item(), INFINITY);
  EXPECT_EQ(eval(constant(Array(DType::kInt32, {})) + 0x1p40).item(), 0);
}

TEST_F(Dtypes, BoolIsNoNumber) {
  expect_refused<DTypeError>([&] { add(bool_, bool_); }, "operands are bool; cast them to a number first");
  expect_refused<DTypeError>([&] { sum(bool_); }, "x is bool");
  expect_refused<DTypeError>([&] { cumsum(bool_); }, "x is bool");
  expect_refused<DTypeError>([&] { max(bool_); }, "x is bool");
  expect_refused<DTypeError>([&] { dot(bool_, of(DType::kBool, {3, 2})); }, "bool");
}

TEST_F(Dtypes, FunctionsOfRealNumbersRefuseIntegers) {
  for (const auto& function : {sqrt, exp, log, sin, cos, sigmoid, tanh, softplus})
    expect_refused<DTypeError>([&] { function(int32_); }, "x is int32; cast it to a floating dtype first");
  expect_refused<DTypeError>([&] { softmax(int32_); }, "int32");
  expect_refused<DTypeError>([&] { floormod(bool_, bool_); }, "floormod: operands are bool");
}

TEST_F(Dtypes, IntegersHaveNoNegativePowers) {
  const Expr two = constant(Array::scalar(std::int32_t{2}));
  const Expr x = of(DType::kInt32, {});
  Function f({x}, {pow(two, x)});
  EXPECT_EQ(f({Array::scalar(std::int32_t{10})})[0].item(), 1024);
  expect_refused<ValueError>(
      [&] { f({Array::scalar(std::int32_t{-1})}); },
      "pow: an integer cannot be raised to the negative power -1; cast to a floating dtype first");
}

TEST_F(Dtypes, ResultsWithDtypesOfTheirOwn) {
  EXPECT_EQ(argmax(float16_).dtype(), DType::kInt64);
  EXPECT_EQ(shape(float16_).dtype(), DType::kInt32);
  EXPECT_EQ(equal(float16_, float16_).dtype(), DType::kBool);
  EXPECT_EQ(any(int32_).dtype(), DType::kBool);
  EXPECT_EQ(arange(3).dtype(), DType::kInt32);
  EXPECT_EQ(one_hot(int32_, 4).dtype(), DType::kFloat32);
  EXPECT_EQ(in_top_k(float32_, of(DType::kInt32, {2}), 1).dtype(), DType::kBool);
  EXPECT_EQ(mean(bool_).dtype(), DType::kFloat32);
  EXPECT_EQ((int32_ / int32_).dtype(), DType::kFloat64);
  session_.config().floatx = DType::kFloat64;
  EXPECT_EQ(mean(bool_).dtype(), DType::kFloat64);
  EXPECT_EQ(var(int32_).dtype(), DType::kFloat64);
  EXPECT_EQ(mean(float16_).dtype(), DType::kFloat16);
}

}  // namespace
}  // namespace syncline::testing
