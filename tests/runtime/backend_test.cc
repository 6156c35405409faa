// The backend's small functions: the ways to make variables and tensors, and the defaults of their options.
#include "syncline/backend.h"

#include <gtest/gtest.h>

#include <cmath>

#include "syncline/session.h"
#include "syncline/training/optimizers.h"
#include "tests/ops/refusal.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

class BackendTest : public ::testing::Test {
 protected:
  Session session_{3};
  SessionScope scope_{session_};
};

TEST_F(BackendTest, VariablesOfNumbers) {
  EXPECT_EQ(variable(0.5).dtype(), DType::kFloat32);
  set_floatx(DType::kFloat64);
  EXPECT_EQ(variable(2).dtype(), DType::kFloat64);
  EXPECT_EQ(variable(3, {.dtype = DType::kInt64}).state().value().values<std::int64_t>()[0], 3);
  EXPECT_EQ(zeros({2, 3}).dtype(), DType::kFloat64);
  EXPECT_EQ(zeros(4).shape(), (Shape{4}));
  EXPECT_EQ(ones({}, {.dtype = DType::kInt8}).dtype(), DType::kInt8);
  EXPECT_EQ(variable(doubles({1, 2}), {.dtype = DType::kFloat32, .name = "w"}).dtype(), DType::kFloat32);
  EXPECT_EQ(random_uniform_variable({3}, 0, 1).dtype(), DType::kFloat64);
  EXPECT_EQ(random_normal_variable({3}, 0, 1, {.dtype = DType::kFloat32}).dtype(), DType::kFloat32);
}

TEST_F(BackendTest, IdentityMatrices) {
  expect_values(get_value(eye(2, {.dtype = DType::kFloat64})), {1, 0, 0, 1});
  expect_values(get_value(eye({2, 3}, {.dtype = DType::kFloat64})), {1, 0, 0, 0, 1, 0});
  expect_refused<ValueError>([] { eye({2, 3, 4}); }, "eye: the size is (2, 3, 4)");
  expect_refused<ValueError>([] { eye(-1); }, "-1 rows");
}

TEST_F(BackendTest, ZerosWithATensorInTheShapeAreATensor) {
  const Expr x = placeholder({.shape = {kUnknown, 2}, .dtype = DType::kFloat64});
  Function f({x}, {zeros(Dims{dim(x, 0), 3}, {.dtype = DType::kFloat64}) + 1.0, ones(Dims{dim(x, 0)})});
  const auto results = f({Array(DType::kFloat64, {4, 2})});
  EXPECT_EQ(results[0].shape(), (Shape{4, 3}));
  EXPECT_EQ(results[1].shape(), (Shape{4}));
}

TEST_F(BackendTest, Constants) {
  expect_values(eval(constant(doubles({1, 2, 3, 4}), {}, Shape{2, 2})), {1, 2, 3, 4});
  expect_values(eval(constant(doubles({5}), {}, Shape{2, 2})), {5, 5, 5, 5});
  EXPECT_EQ(constant(doubles({5}), DType::kInt32).dtype(), DType::kInt32);
  EXPECT_EQ(constant(1, DType::kFloat32, {2}, "one").name(), "one");
  expect_refused<ShapeError>(
      [] {
        constant(doubles({1, 2, 3}), {}, Shape{2, 2});
      },
      "(3,) does not fill the shape (2, 2)");
}

TEST_F(BackendTest, Placeholders) {
  EXPECT_EQ(placeholder({.ndim = 3}).shape(), (Shape{kUnknown, kUnknown, kUnknown}));
  EXPECT_EQ(placeholder({.shape = {2, 3}, .ndim = 2}).shape(), (Shape{2, 3}));
  expect_refused<ValueError>([] { placeholder({.shape = {2, 3}, .ndim = 3}); }, "does not have 3 dimensions");
}

TEST_F(BackendTest, SettingValues) {
  const Variable scalar = variable(1, {.dtype = DType::kInt64}), vector = zeros({2});
  set_value(scalar, 7);
  EXPECT_EQ(get_value(scalar).item(), 7);
  batch_set_value({{scalar, 9}, {vector, Array::from<float>(Shape{2}, {1, 2})}});
  EXPECT_EQ(get_value(scalar).item(), 9);
  expect_refused<ShapeError>([&] { set_value(vector, 1.5); }, "the value has ()");
  expect_refused<DTypeError>([&] { set_value(vector, doubles({1, 2})); }, "cast the value");
}

TEST_F(BackendTest, UpdatesByNumbers) {
  const Variable x = variable(doubles({1, 2})), n = variable(0, {.dtype = DType::kInt32}), y = variable(doubles({5}));
  Function f({}, {}, {update_add(x, 2), update_sub(n, 3), update(y, 8)});
  f({});
  expect_values(get_value(x), {3, 4});
  EXPECT_EQ(get_value(n).item(), -3);
  expect_values(get_value(y), {8});
}

TEST_F(BackendTest, AConstraintProjectsWhatAnOptimizerComputes) {
  const Variable x =
      variable(doubles({0.5, 2}), {.constraint = [](const Expr& w) { return maximum(w, zeros_like(w)); }});
  const Variable free = variable(doubles({0.5, 2}));
  const std::vector<Variable> both{x, free};
  const Optimizer sgd_both = sgd(sum(x.expr() + free.expr()), both, {.learning_rate = 1});
  Function f({}, {}, sgd_both.updates);
  f({});
  expect_values(get_value(x), {0, 1});
  expect_values(get_value(free), {-0.5, 1});
}

TEST_F(BackendTest, WhatATensorIs) {
  const Variable v = variable(1.0);
  const Expr x = placeholder({.shape = {2}});
  EXPECT_TRUE(is_tensor(x) && is_tensor(v));
  EXPECT_FALSE(is_tensor(Expr{}) || is_tensor(1) || is_tensor(Array()) || is_tensor(std::vector<Expr>{x}));
  EXPECT_TRUE(is_variable(v) && is_variable(v.expr()));
  EXPECT_FALSE(is_variable(x) || is_variable(v.expr() + 1.0) || is_variable("w") || is_variable(nullptr));
  EXPECT_FALSE(is_keras_tensor(x) || is_keras_tensor(v));
  expect_refused<ValueError>([] { is_keras_tensor(Array()); }, "x is not a tensor");
  EXPECT_EQ(count_params(zeros({3, 4})), 12);
  expect_refused<ShapeError>([] { count_params(placeholder({.ndim = 1})); }, "unknown dimension");
}

TEST_F(BackendTest, NamesAndDtypesOfCopies) {
  const Expr x = placeholder({.shape = {2}});
  EXPECT_EQ(identity(x, "same").name(), "same");
  EXPECT_EQ(zeros_like(x, {.dtype = DType::kInt32, .name = "none"}).dtype(), DType::kInt32);
  EXPECT_EQ(ones_like(x, {.name = "ones"}).name(), "ones");
  const std::vector<Expr> stopped = stop_gradient({x * 2.0, x});
  EXPECT_FALSE(gradients(sum(stopped[0] + stopped[1]), {x})[0]);
}

TEST_F(BackendTest, GradientsOfVariables) {
  const Variable a = variable(doubles({1, 2})), b = variable(doubles({3, 4}));
  const std::vector<Variable> both{a, b};
  const auto found = gradients(a.expr() * b, both);  // of the sum of the product's elements
  expect_values(eval(found[0]), {3, 4});
  expect_values(eval(found[1]), {1, 2});
}

TEST_F(BackendTest, LearningPhase) {
  for (const int wrong : {-1, 2}) expect_refused<ValueError>([&] { set_learning_phase(wrong); }, "give 0 (testing)");
  set_learning_phase(1);
  EXPECT_EQ(eval(in_train_phase(constant(1), constant(2))).item(), 1);
}

TEST_F(BackendTest, OptionsLeftOutComeFromTheConfiguration) {
  set_floatx(DType::kFloat64);
  set_epsilon(0.25);
  set_image_data_format("channels_first");
  EXPECT_EQ(placeholder({.shape = {1}}).dtype(), DType::kFloat64);
  EXPECT_EQ(random_uniform({2}).dtype(), DType::kFloat64);
  EXPECT_EQ(constant(1).dtype(), DType::kFloat64);
  const Expr images = placeholder({.shape = {1, 3, 8, 8}});
  EXPECT_EQ(pool2d(images, {2, 2}).shape(), (Shape{1, 3, 7, 7}));
  EXPECT_EQ(spatial_2d_padding(images).shape(), (Shape{1, 3, 10, 10}));
  const Expr wrong = binary_crossentropy(constant(1), constant(0));
  EXPECT_NEAR(eval(wrong).item(), -std::log(0.25 + 0.25), 1e-12);
  Session other(1);
  SessionScope inner(other);
  EXPECT_EQ(constant(1).dtype(), DType::kFloat32);
}

TEST_F(BackendTest, RandomIntegers) {
  const Array drawn = eval(random_uniform({4000}, {.minval = -3, .maxval = 5, .dtype = DType::kInt16}));
  std::vector<int> count(8);
  for (const std::int16_t value : drawn.values<std::int16_t>()) ++count.at(static_cast<std::size_t>(value + 3));
  for (const int n : count) EXPECT_NEAR(n, 500, 120);
  expect_refused<ValueError>([] { random_uniform({2}, {.minval = 2, .maxval = 2, .dtype = DType::kInt32}); }, "whole");
  EXPECT_EQ(random_binomial({5}, {.p = 1, .dtype = DType::kInt32}).dtype(), DType::kInt32);
}

TEST_F(BackendTest, ManualInitialization) {
  EXPECT_FALSE(manual_variable_initialization());
  manual_variable_initialization(true);
  EXPECT_TRUE(manual_variable_initialization());
  EXPECT_EQ(get_value(variable(4)).item(), 4);
}

}  // namespace
}  // namespace syncline::testing
