// Functions: feeds, outputs, errors, plans for several shapes.
#include "syncline/backend/function.h"

#include <gtest/gtest.h>

#include "syncline/backend/config.h"
#include "syncline/backend/core.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/session.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

class FunctionTest : public ::testing::Test {
 protected:
  Expr input(Shape shape, std::string name = "x") {
    return placeholder({.shape = std::move(shape), .dtype = DType::kFloat64, .name = std::move(name)});
  }
  Session session_;
  SessionScope scope_{session_};
};

TEST_F(FunctionTest, FeedsAndFetches) {
  const Expr x = input({2}), y = input({2}, "y");
  Function f({x, y}, {x + y, x * y, x, sum(y)});
  const auto out = f({doubles({1, 2}), doubles({3, 5})});
  ASSERT_EQ(out.size(), 4u);
  expect_values(out[0], {4, 7});
  expect_values(out[1], {3, 10});
  expect_values(out[2], {1, 2});
  expect_values(out[3], {8});
  EXPECT_EQ(out[3].shape(), Shape{});
}

TEST_F(FunctionTest, ResultsAreTheCallersOwn) {
  const Expr x = input({2});
  Function f({x}, {x * 2.0});
  const Array first = f({doubles({1, 2})})[0];
  f({doubles({5, 6})});
  expect_values(first, {2, 4});
}

TEST_F(FunctionTest, OneOutputSeveralTimes) {
  const Expr x = input({2}), y = x * 3.0;
  const auto out = Function({x}, {y, y, x * 3.0})({doubles({1, 2})});
  for (const Array& a : out) expect_values(a, {3, 6});
}

TEST_F(FunctionTest, RunWritesIntoTheCallersArrays) {
  const Expr x = input({kUnknown});
  Function f({x}, {x * 2.0, sum(x)});
  std::vector<Array> out{Array(DType::kFloat64, {2}), Array(DType::kFloat64, {})};
  const std::vector<Array> feeds{doubles({4, 5})};
  f.run(feeds, out);
  expect_values(out[0], {8, 10});
  expect_values(out[1], {9});
}

TEST_F(FunctionTest, RunRefusesArraysThatDoNotFitBeforeAnythingChanges) {
  const Expr x = input({2});
  const Variable v = variable(doubles({0, 0}));
  Function f({x}, {x * 2.0}, {update_add(v, x)}, "train");
  const std::vector<Array> feeds{doubles({4, 5})};
  std::vector<Array> wrong_shape{Array(DType::kFloat64, {3})}, wrong_dtype{Array(DType::kFloat32, {2})};
  std::vector<Array> too_many(2, Array(DType::kFloat64, {2}));
  const auto text = message_of<ShapeError>([&] { f.run(feeds, wrong_shape); });
  EXPECT_NE(text.find("train"), std::string::npos);
  EXPECT_NE(text.find("(3,)"), std::string::npos);
  EXPECT_THROW(f.run(feeds, wrong_dtype), DTypeError);
  EXPECT_THROW(f.run(feeds, too_many), ValueError);
  expect_values(get_value(v), {0, 0});
}

TEST_F(FunctionTest, WrongFeedsAreNamedAndChangeNothing) {
  const Expr x = input({kUnknown, 2}, "pixels");
  const Variable v = variable(doubles({0}));
  Function f({x}, {sum(x)}, {update(v, constant(1, DType::kFloat64, {1}))}, "train");
  const auto number = message_of<ValueError>([&] { f({}); });
  EXPECT_NE(number.find("train"), std::string::npos) << number;
  EXPECT_NE(number.find("0 values are given for 1"), std::string::npos) << number;
  EXPECT_THROW(f({doubles(Shape{1, 2}, {1, 2}), doubles({1})}), ValueError);
  const auto shape = message_of<ShapeError>([&] { f({doubles(Shape{1, 3}, {1, 2, 3})}); });
  for (const char* part : {"train", "pixels", "(?, 2)", "(1, 3)"})
    EXPECT_NE(shape.find(part), std::string::npos) << part << " in: " << shape;
  const auto dtype = message_of<DTypeError>([&] { f({doubles(Shape{1, 2}, {1, 2}).cast(DType::kFloat32)}); });
  for (const char* part : {"train", "pixels", "float32", "float64"})
    EXPECT_NE(dtype.find(part), std::string::npos) << part << " in: " << dtype;
  expect_values(get_value(v), {0});
}

TEST_F(FunctionTest, ShapesThatDoNotFitTogetherAreRefusedWhenFed) {
  const Expr x = input({kUnknown}), y = input({kUnknown}, "y");
  const Variable v = variable(doubles({0}));
  Function f({x, y}, {x + y}, {update_add(v, constant(1, DType::kFloat64, {1}))});
  EXPECT_THROW(f({doubles({1, 2}), doubles({1, 2, 3})}), ShapeError);
  expect_values(get_value(v), {0});
  expect_values(f({doubles({1, 2}), doubles({1, 2})})[0], {2, 4});
}

TEST_F(FunctionTest, InputsMustBePlaceholders) {
  const Variable v = variable(doubles({0}), {.name = "v"});
  const auto text = message_of<ValueError>([&] { Function f({v}, {v}, {}, "predict"); });
  EXPECT_NE(text.find("predict"), std::string::npos);
  EXPECT_NE(text.find("'v'"), std::string::npos);
}

TEST_F(FunctionTest, PlaceholdersThatAreNotInputsAreRefusedByName) {
  const Expr x = input({2}), y = input({2}, "forgotten");
  Function f({x}, {x + y});
  const auto text = message_of<ValueError>([&] { f({doubles({1, 2})}); });
  EXPECT_NE(text.find("forgotten"), std::string::npos) << text;
  EXPECT_THROW(Function({x}, {y})({doubles({1, 2})}), ValueError);
  Function unused({x}, {x});
  expect_values(unused({doubles({1, 2})})[0], {1, 2});
}

TEST_F(FunctionTest, AnInputThatNothingNeedsIsStillChecked) {
  const Expr x = input({2}), y = input({3}, "unused");
  Function f({x, y}, {x});
  expect_values(f({doubles({1, 2}), doubles({1, 2, 3})})[0], {1, 2});
  EXPECT_THROW(f({doubles({1, 2}), doubles({1, 2})}), ShapeError);
}

TEST_F(FunctionTest, EachBatchSizeHasItsPlan) {
  const Expr x = input({kUnknown, 2});
  const Variable w = variable(doubles(Shape{2, 1}, {1, 10}));
  Function f({x}, {dot(x, w), sum(x, {0}), shape(x)});
  for (int round = 0; round < 2; ++round) {
    auto out = f({doubles(Shape{2, 2}, {1, 2, 3, 4})});
    expect_values(out[0], {21, 43});
    expect_values(out[1], {4, 6});
    out = f({doubles(Shape{1, 2}, {5, 6})});
    EXPECT_EQ(out[0].shape(), (Shape{1, 1}));
    expect_values(out[0], {65});
    expect_values(out[2], {1, 2});
    out = f({Array(DType::kFloat64, {0, 2})});
    EXPECT_EQ(out[0].shape(), (Shape{0, 1}));
    expect_values(out[1], {0, 0});
    expect_values(out[2], {0, 2});
  }
}

TEST_F(FunctionTest, ManyBatchSizes) {
  const Expr x = input({kUnknown});
  Function f({x}, {sum(x * 2.0)});
  for (int round = 0; round < 2; ++round)
    for (std::int64_t n = 0; n < 50; ++n)
      expect_values(f({doubles(std::vector<double>(static_cast<std::size_t>(n), 1))})[0],
                    {2.0 * static_cast<double>(n)});
}

TEST_F(FunctionTest, AFunctionWithALargerArenaMovesTheOthersMemory) {
  const Expr x = input({kUnknown});
  Function small({x}, {sum(exp(reverse(x, {0})))});
  const Array two = doubles({0, 0});
  expect_values(small({two})[0], {2});
  Function large({x}, {sum(exp(reverse(x, {0})))});
  expect_values(large({Array(DType::kFloat64, {100000})})[0], {100000});
  expect_values(small({two})[0], {2});
}

TEST_F(FunctionTest, LearningPhaseDecidesWhichBranchIsComputed) {
  const Expr x = input({2}), y = input({2}, "y");
  const Expr picked = in_train_phase(x * 2.0, y);
  Function f({x, y, learning_phase()}, {picked, in_test_phase(x * 2.0, y)});
  const Array a = doubles({1, 2}), b = doubles({5, 6});
  auto out = f({a, b, Array::scalar(true)});
  expect_values(out[0], {2, 4});
  expect_values(out[1], {5, 6});
  out = f({a, b, Array::scalar(false)});
  expect_values(out[0], {5, 6});
  expect_values(out[1], {2, 4});
  expect_values(f({a, b, Array::scalar(true)})[0], {2, 4});
}

TEST_F(FunctionTest, APlaceholderOfTheDeadBranchIsNotNeeded) {
  const Expr x = input({2}), y = input({2}, "y");
  Function f({x, learning_phase()}, {in_train_phase(y, x)});
  expect_values(f({doubles({1, 2}), Array::scalar(false)})[0], {1, 2});
  const auto text = message_of<ValueError>([&] { f({doubles({1, 2}), Array::scalar(true)}); });
  EXPECT_NE(text.find("'y'"), std::string::npos) << text;
}

TEST_F(FunctionTest, SetLearningPhaseNeedsNoFeed) {
  const Expr x = input({2});
  set_learning_phase(true);
  expect_values(Function({x}, {in_train_phase(x * 2.0, x)})({doubles({1, 2})})[0], {2, 4});
  set_learning_phase(false);
  expect_values(Function({x}, {in_train_phase(x * 2.0, x)})({doubles({1, 2})})[0], {1, 2});
  clear_session();
  EXPECT_TRUE(is_placeholder(learning_phase()));
}

// A graph keeps the learning phase with which it was built when the session's phase changes.
TEST_F(FunctionTest, AnUnfedPhaseIsTestingForGood) {
  const Expr x = input({kUnknown});
  const auto doubled = [&] { return Function({x}, {in_train_phase(x * 2.0, x)}); };
  Function f = doubled();
  expect_values(f({doubles({1, 2})})[0], {1, 2});
  set_learning_phase(true);
  expect_values(f({doubles({1, 2, 3})})[0], {1, 2, 3});
  expect_values(doubled()({doubles({1})})[0], {2});
  clear_session();
  expect_values(f({doubles({4})})[0], {4});
  Function fed({x, learning_phase()}, {in_train_phase(x * 2.0, x)});
  clear_session();
  expect_values(fed({doubles({1}), Array::scalar(true)})[0], {2});
  expect_values(f({doubles({1, 2, 3, 4})})[0], {1, 2, 3, 4});
}

TEST_F(FunctionTest, SecondDerivatives) {
  const Expr x = input({3});
  const Expr first = gradients(sum(x * x * x), {x})[0];
  const Expr second = gradients(sum(first), {x})[0];
  const Expr mixed = gradients(sum(square(first)), {x})[0];  // 2 * 3 x^2 * 6 x
  const auto out = Function({x}, {first, second, mixed})({doubles({1, 2, -3})});
  expect_values(out[0], {3, 12, 27});
  expect_values(out[1], {6, 12, -18});
  expect_values(out[2], {36, 288, -972});
}

TEST_F(FunctionTest, StopGradientIsConstantForGradients) {
  const Expr x = input({2});
  const auto g = gradients(sum(x * stop_gradient(x)), {x});
  expect_values(Function({x}, {g[0]})({doubles({3, 4})})[0], {3, 4});
  EXPECT_FALSE(gradients(sum(stop_gradient(x)), {x})[0]);
}

TEST_F(FunctionTest, EvalOfWhatNeedsNoFeed) {
  const Variable v = variable(doubles({1, 2}));
  expect_values(eval(v.expr() + 1.0), {2, 3});
  expect_values(eval(constant(doubles({4}))), {4});
  expect_values(eval(v), {1, 2});
  EXPECT_THROW(eval(input({1})), ValueError);
}

TEST_F(FunctionTest, AnIndexOutOfRangeIsAnErrorThatLeavesTheFunctionUsable) {
  const Variable table = variable(doubles(Shape{2, 1}, {5, 6}));
  const Expr i = placeholder({.shape = {kUnknown}, .dtype = DType::kInt32});
  Function f({i}, {gather(table, i)});
  EXPECT_THROW(f({Array::from<std::int32_t>({1}, {2})}), ValueError);
  expect_values(f({Array::from<std::int32_t>({1}, {1})})[0], {6});
}

TEST_F(FunctionTest, KeepsItsGraphAlive) {
  Function f = [&] {
    const Expr x = input({2});
    const Variable v = variable(doubles({10, 20}));
    return Function({x}, {x + v}, {update_add(v, x)});
  }();
  f({doubles({1, 2})});
  expect_values(f({doubles({1, 2})})[0], {12, 24});
}

}  // namespace
}  // namespace syncline::testing
