// All updates of a step, and its outputs, see the values from before it.
#include <gtest/gtest.h>

#include <atomic>

#include "syncline/backend/control.h"
#include "syncline/backend/function.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/session.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

class UpdatesTest : public ::testing::Test {
 protected:
  Variable vector(std::vector<double> values) { return variable(doubles(std::move(values))); }
  Session session_;
  SessionScope scope_{session_};
};

TEST_F(UpdatesTest, SwapOfTwoVariables) {
  const Variable a = vector({1, 2}), b = vector({3, 4});
  Function f({}, {}, {update(a, b), update(b, a)});
  f({});
  expect_values(get_value(a), {3, 4});
  expect_values(get_value(b), {1, 2});
  f({});
  expect_values(get_value(a), {1, 2});
}

TEST_F(UpdatesTest, RotationOfThreeWithArithmetic) {
  const Variable a = vector({1, 2}), b = vector({3, 4}), c = vector({5, 6});
  Function f({}, {}, {update(a, b.expr() * 10.0), update(b, c.expr() + 1.0), update(c, a.expr() - 1.0)});
  f({});
  expect_values(get_value(a), {30, 40});
  expect_values(get_value(b), {6, 7});
  expect_values(get_value(c), {0, 1});
}

TEST_F(UpdatesTest, EachReadsBoth) {
  const Variable a = vector({1, 2}), b = vector({3, 5});
  Function f({}, {}, {update(a, a.expr() + b), update(b, a.expr() - b)});
  f({});
  expect_values(get_value(a), {4, 7});
  expect_values(get_value(b), {-2, -3});
}

TEST_F(UpdatesTest, MomentumUsesTheNewVelocityAndTheOldWeight) {
  const Variable w = vector({10}), m = vector({2});
  const Expr velocity = m.expr() * 0.5 - w.expr() * 0.1;
  Function f({}, {w, m}, {update(m, velocity), update_add(w, velocity)});
  const auto out = f({});
  expect_values(out[0], {10});
  expect_values(out[1], {2});
  expect_values(get_value(m), {0});
  expect_values(get_value(w), {10});
  f({});
  expect_values(get_value(m), {-1});
  expect_values(get_value(w), {9});
}

TEST_F(UpdatesTest, OutputsAreTheOldValues) {
  const Variable w = vector({1, 2});
  Function f({}, {w, w.expr() * 2.0, reshape(w, {2, 1})}, {update_add(w, w.expr() * 9.0)});
  const auto out = f({});
  expect_values(out[0], {1, 2});
  expect_values(out[1], {2, 4});
  expect_values(out[2], {1, 2});
  expect_values(get_value(w), {10, 20});
}

TEST_F(UpdatesTest, AFetchedNewValueIsTheNewOne) {
  const Variable w = vector({1, 2});
  const Expr next = w.expr() + 1.0;
  Function f({}, {next, w, next * 2.0}, {update(w, next)});
  const auto out = f({});
  expect_values(out[0], {2, 3});
  expect_values(out[1], {1, 2});
  expect_values(out[2], {4, 6});
  expect_values(get_value(w), {2, 3});
  expect_values(f({})[0], {3, 4});
}

TEST_F(UpdatesTest, ValuesThatNothingComputes) {
  const Expr x = placeholder({.shape = {2}, .dtype = DType::kFloat64});
  const Variable a = vector({1, 2}), b = vector({3, 4}), c = vector({5, 6}), d = vector({7, 8});
  Function f({x}, {}, {update(a, x), update(b, constant(doubles({9, 9}))), update(c, d)});
  f({doubles({-1, -2})});
  expect_values(get_value(a), {-1, -2});
  expect_values(get_value(b), {9, 9});
  expect_values(get_value(c), {7, 8});
  expect_values(get_value(d), {7, 8});
  set_value(d, doubles({0, 1}));
  f({doubles({-3, -4})});
  expect_values(get_value(a), {-3, -4});
  expect_values(get_value(c), {0, 1});
}

TEST_F(UpdatesTest, OneValueForTwoVariables) {
  const Variable a = vector({1, 2}), b = vector({3, 4});
  const Expr both = a.expr() + b;
  Function f({}, {both}, {update(a, both), update(b, both)});
  expect_values(f({})[0], {4, 6});
  expect_values(get_value(a), {4, 6});
  expect_values(get_value(b), {4, 6});
  expect_values(f({})[0], {8, 12});
}

TEST_F(UpdatesTest, ItselfAndAViewOfItself) {
  const Variable a = variable(doubles(Shape{2, 2}, {1, 2, 3, 4}));
  Function same({}, {}, {update(a, a)});
  same({});
  expect_values(get_value(a), {1, 2, 3, 4});
  Function turned({}, {}, {update(a, transpose(a))});
  turned({});
  expect_values(get_value(a), {1, 3, 2, 4});
  Function reversed({}, {a}, {update(a, reverse(a, {0, 1}))});
  reversed({});
  expect_values(get_value(a), {4, 2, 3, 1});
  Function viewed({}, {}, {update(a, reshape(reshape(a, {4}) * 2.0, {2, 2}))});
  viewed({});
  expect_values(get_value(a), {8, 4, 6, 2});
}

TEST_F(UpdatesTest, ABroadcastReadOfTheOldValue) {
  // Each element of the new value reads old elements that an in-place pass would overwrite earlier or later.
  const Variable a = variable(doubles(Shape{2, 2}, {1, 2, 3, 4}));
  Function f({}, {}, {update(a, a.expr() + reshape(slice(a, {0, 0}, {1, 2}), {2, 1}) + sum(a))});
  f({});
  expect_values(get_value(a), {12, 13, 15, 16});
  Function crossed({}, {}, {update(a, a.expr() - transpose(a))});
  crossed({});
  expect_values(get_value(a), {0, -2, 2, 0});
}

TEST_F(UpdatesTest, AProductWithTheOldValue) {
  const Variable a = variable(doubles(Shape{2, 2}, {0, 1, 1, 1}));
  Function f({}, {}, {update(a, dot(a, a))});
  f({});
  expect_values(get_value(a), {1, 1, 1, 2});
}

TEST_F(UpdatesTest, RowsOfItselfSubtractedInAnotherOrder) {
  const Variable a = vector({1, 2, 5});
  Function f({}, {}, {update(a, scatter_sub(a, a, constant(Array::from<std::int32_t>({3}, {1, 0, 1}))))});
  f({});
  expect_values(get_value(a), {1 - 2, 2 - 1 - 5, 5});
}

TEST_F(UpdatesTest, TheOldValueIsReadAfterTheNewOneIsThere) {
  // `late` needs w after a long chain, while the new w is ready at once.
  const Variable w = vector({1, 2}), late = vector({0, 0});
  Expr chain = sum(exp(w));
  for (int i = 0; i < 5; ++i) chain = sum(dot(reshape(w, {1, 2}) * chain, reshape(w, {2, 1})) * 0.1);
  Function f({}, {chain}, {update(w, w.expr() * 2.0), update(late, w.expr() * 3.0 + chain * 0.0)});
  f({});
  expect_values(get_value(w), {2, 4});
  expect_values(get_value(late), {3, 6});
}

TEST_F(UpdatesTest, AVariableOnceAFunction) {
  const Variable a = variable(doubles({1}), {.name = "twice"});
  const auto text = message_of<ValueError>([&] { Function f({}, {}, {update(a, a), update_add(a, a)}, "train"); });
  EXPECT_NE(text.find("train"), std::string::npos);
  EXPECT_NE(text.find("twice"), std::string::npos);
}

TEST_F(UpdatesTest, ScalarCounters) {
  const Variable n = variable(Array::scalar<std::int64_t>(0));
  Function f({}, {n}, {update_add(n, scalar_like(1, n))});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(f({})[0].item(), i);
  EXPECT_EQ(get_value(n).item(), 5);
}

// After the first write to a variable, neither the step nor the body of a loop checks for an interruption.
TEST_F(UpdatesTest, NobodyIsInterruptedOnceAVariableHasChanged) {
  const Variable v = variable(random_doubles({200, 60}, 1));
  const Update early = update(v, v.expr() * 0.9);
  const Expr folded = foldl([](const Expr& sum, const Expr& e) { return tanh(sum + e); },
                            constant(random_doubles({20, 3}, 2)), constant(doubles({0, 0, 0})));
  Function f({}, {folded}, {early});
  const Array before = get_value(v);
  const std::atomic<bool> asked = true;
  int calls = 0;
  session_.set_interruption(&asked, [&] {
    ++calls;
    EXPECT_TRUE(same_bits(v.state().value(), before));
  });
  f({});
  session_.set_interruption(nullptr, {});
  EXPECT_GT(calls, 0);
  EXPECT_FALSE(same_bits(v.state().value(), before));
}

}  // namespace
}  // namespace syncline::testing
