#include "syncline/backend/variable.h"

#include <gtest/gtest.h>

#include "syncline/backend/function.h"
#include "syncline/backend/math.h"
#include "syncline/session.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

class VariableTest : public ::testing::Test {
  Session session_;
  SessionScope scope_{session_};
};

TEST_F(VariableTest, KeepsACopyOfTheInitialValue) {
  Array value = doubles({1, 2});
  const Variable x = variable(value);
  value.data<double>()[0] = 9;
  expect_values(get_value(x), {1, 2});
  get_value(x).data<double>()[0] = 9;
  expect_values(get_value(x), {1, 2});
}

TEST_F(VariableTest, NamesAreUnique) {
  EXPECT_EQ(variable(doubles({1}), {.name = "w"}).name(), "w");
  EXPECT_EQ(variable(doubles({1}), {.name = "w"}).name(), "w_1");
  EXPECT_EQ(variable(doubles({1}), {.name = "w_1"}).name(), "w_1_1");
  EXPECT_EQ(variable(doubles({1}), {.name = "w"}).name(), "w_2");
  EXPECT_EQ(variable(doubles({1})).name(), "variable");
}

TEST_F(VariableTest, FromAnExpression) {
  const Variable x = variable(constant(2, DType::kFloat64, {3}) * 4.0);
  expect_values(get_value(x), {8, 8, 8});
}

TEST_F(VariableTest, SetValueIsSeenByFunctionsMadeBefore) {
  const Variable x = variable(doubles({1, 2}));
  Function f({}, {x.expr() * 10.0});
  expect_values(f({})[0], {10, 20});
  set_value(x, doubles({3, 4}));
  expect_values(f({})[0], {30, 40});
}

TEST_F(VariableTest, SetValueRefusesWhatDoesNotFit) {
  const Variable x = variable(doubles({1, 2}), {.name = "weights"});
  const auto shape = message_of<ShapeError>([&] { set_value(x, doubles({1, 2, 3})); });
  EXPECT_NE(shape.find("weights"), std::string::npos);
  EXPECT_NE(shape.find("(2,)"), std::string::npos) << shape;
  EXPECT_NE(shape.find("(3,)"), std::string::npos) << shape;
  const auto dtype = message_of<DTypeError>([&] { set_value(x, doubles({1, 2}).cast(DType::kFloat32)); });
  EXPECT_NE(dtype.find("weights"), std::string::npos);
  EXPECT_NE(dtype.find("float32"), std::string::npos) << dtype;
  expect_values(get_value(x), {1, 2});
}

TEST_F(VariableTest, BatchSetValueIsAllOrNothing) {
  const Variable a = variable(doubles({1})), b = variable(doubles({2, 3}));
  const std::vector<std::pair<Variable, Value>> wrong{{a, doubles({7})}, {b, doubles({8})}};
  EXPECT_THROW(batch_set_value(wrong), ShapeError);
  expect_values(get_value(a), {1});
  const std::vector<std::pair<Variable, Value>> right{{a, doubles({7})}, {b, doubles({8, 9})}};
  batch_set_value(right);
  const std::vector<Variable> both{a, b};
  const auto values = batch_get_value(both);
  expect_values(values.at(0), {7});
  expect_values(values.at(1), {8, 9});
}

TEST_F(VariableTest, OfNoElements) {
  const Variable x = variable(Array(DType::kFloat64, {0, 3}));
  set_value(x, Array(DType::kFloat64, {0, 3}));
  Function f({}, {x}, {update(x, x.expr() + 1.0)});
  EXPECT_EQ(f({})[0].shape(), (Shape{0, 3}));
  EXPECT_EQ(get_value(x).shape(), (Shape{0, 3}));
}

TEST_F(VariableTest, UpdateRefusesAnotherDtypeOrShape) {
  const Variable x = variable(doubles({1, 2}), {.name = "x"});
  EXPECT_THROW(update(x, constant(0, DType::kFloat32, {2})), DTypeError);
  EXPECT_THROW(update(x, constant(0, DType::kFloat64, {3})), ShapeError);
  EXPECT_THROW(update_add(x, constant(0, DType::kFloat64, {4, 2})), ShapeError);
}

TEST_F(VariableTest, MovingAverage) {
  const Variable x = variable(doubles({1, 2}));
  Function f({}, {}, {moving_average_update(x, constant(5, DType::kFloat64, {2}), 0.9)});
  f({});
  expect_values(get_value(x), {0.9 * 1 + 0.1 * 5, 0.9 * 2 + 0.1 * 5});
}

}  // namespace
}  // namespace syncline::testing
