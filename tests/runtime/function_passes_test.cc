// Elementwise ops, slices and loops become few passes over memory, with unchanged results.
#include <gtest/gtest.h>

#include <cmath>

#include "syncline/backend/control.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/session.h"
#include "syncline/training/optimizers.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

class PassesTest : public ::testing::Test {
 protected:
  Expr input(Shape shape) { return placeholder({.shape = std::move(shape), .dtype = DType::kFloat64}); }
  Session session_;
  SessionScope scope_{session_};
};

TEST_F(PassesTest, SlicesAreReadWhereTheyLie) {
  const Expr x = input({2, 4}), bias = input({4});
  const Expr z = x + bias;
  Function f({x, bias}, {slice_axis(z, 1, 0, 2) * slice_axis(z, 1, 2, 2)});
  const std::vector<Array> feeds{doubles(Shape{2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), doubles({1, 0, 0, 2})};
  EXPECT_EQ(lines(f.describe(feeds)).size(), 1u) << f.describe(feeds);
  expect_values(f(feeds)[0], {2 * 3, 2 * 6, 6 * 7, 6 * 10});
}

// As DenseNet's blocks: gradients are sums of slices of sums of slices.
TEST_F(PassesTest, AChainOfConcatenationsHasAFewSlicesALayer) {
  const auto slices_of = [&](int layers) {
    const Expr x = input({4, 3});
    std::vector<Variable> weights;
    Expr y = x;
    for (int i = 0; i < layers; ++i) {
      weights.push_back(variable(random_doubles({3 + 2 * i, 2}, static_cast<std::uint64_t>(i) + 1)));
      y = concatenate({y, dot(tanh(y), weights.back())}, 1);
    }
    const Expr loss = sum(square(y));
    Function f({x}, gradients(loss, std::vector<Expr>(weights.begin(), weights.end())));
    const std::vector<Array> feeds{random_doubles({4, 3}, 7)};
    return count_lines(f.describe(feeds), "slice(");
  };
  EXPECT_LE(slices_of(16), 2 * 16);
}

// A slice visits a few terms of a sum only: 2^40 paths lead to the terms of the first, 40,001 terms are in the second.
// So does a sum of pads.
TEST_F(PassesTest, ASliceOfALargeSum) {
  const Expr x = input({2, 3});
  Expr doubled = x, chain = x, padded = pad(slice_axis(x, 1, 0, 2), {0, 0}, {0, 1});
  for (int i = 0; i < 40; ++i) doubled = doubled + doubled, padded = padded + padded;
  for (int i = 0; i < 20'000; ++i) chain = x + (chain + x);
  Function f({x}, {slice_axis(doubled, 1, 1, 1), slice_axis(chain, 1, 1, 1), slice_axis(padded, 1, 1, 1)});
  const std::vector<Array> got = f({doubles(Shape{2, 3}, {1, 2, 3, 4, 5, 6})});
  expect_values(got[0], {2 * std::pow(2.0, 40), 5 * std::pow(2.0, 40)});
  expect_values(got[1], {2 * 40'001.0, 5 * 40'001.0});
  expect_values(got[2], {2 * std::pow(2.0, 40), 5 * std::pow(2.0, 40)});
}

TEST_F(PassesTest, ASliceOverEveryRowOfItsVariable) {
  const Variable v = variable(doubles(Shape{3, 2}, {1, 2, 10, 20, 100, 200}));
  Function f({}, {}, {update(v, v.expr() + slice_axis(v, 0, 0, 1))});
  f({});
  expect_values(get_value(v), {2, 4, 11, 22, 101, 202});
}

TEST_F(PassesTest, ASliceOfWhatTheSamePassWrites) {
  const Expr x = input({2, 4});
  const Expr y = square(x);
  Function f({x}, {y, slice_axis(y, 1, 1, 3) + slice_axis(x, 1, 0, 3)});
  const std::vector<Array> got = f({doubles(Shape{2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})});
  expect_values(got[0], {1, 4, 9, 16, 25, 36, 49, 64});
  expect_values(got[1], {5, 11, 19, 41, 55, 71});
}

TEST_F(PassesTest, NeighboursThatShareOperandsAreOnePass) {
  const Expr x = input({2, 3}), y = input({2, 3});
  const Expr product = x * y, difference = x - y;
  Function f({x, y}, {sum(product), sum(difference), product, difference});
  const std::vector<Array> feeds{random_doubles({2, 3}, 1), random_doubles({2, 3}, 2)};
  EXPECT_EQ(count_lines(f.describe(feeds), "reduce mul sub sum sum"), 1) << f.describe(feeds);
  const std::vector<Array> got = f(feeds);
  double total = 0;
  for (const double value : numbers(got[2])) total += value;
  EXPECT_NEAR(got[0].item(), total, 1e-12);
}

// Each choice has three operands; together they need more registers than a program has.
TEST_F(PassesTest, ManyOperandsAreSeveralPrograms) {
  constexpr int kTerms = 33;
  std::vector<Expr> inputs;
  std::vector<Array> feeds;
  std::vector<double> wanted(4);
  Expr total, other;
  for (int i = 0; i < kTerms; ++i) {
    const bool first = i % 3 == 0;
    inputs.insert(inputs.end(), {placeholder({.shape = {4}, .dtype = DType::kBool}), input({4}), input({4})});
    feeds.push_back(Array::from<bool>({4}, {first, first, !first, !first}));
    feeds.push_back(random_doubles({4}, 2 * i));
    feeds.push_back(random_doubles({4}, 2 * i + 1));
    const Expr chosen = select(inputs[3 * i], inputs[3 * i + 1], inputs[3 * i + 2]);
    total = total ? total + chosen : chosen;
    other = other ? other * chosen : chosen;
    for (std::size_t k = 0; k < 4; ++k) wanted[k] += numbers(feeds[3 * i + ((k < 2) == first ? 1 : 2)])[k];
  }
  expect_values(Function(inputs, {total})(feeds)[0], wanted);
  expect_values(Function(inputs, {total, other})(feeds)[0], wanted);
}

TEST_F(PassesTest, AnOutputMayBeAFeed) {
  const Expr x = input({4});
  Function f({x}, {reverse(x, {0}), x * 2.0});
  Array a = doubles({1, 2, 3, 4});
  std::vector<Array> outputs{a, doubles({0, 0, 0, 0})};
  f.run(std::vector<Array>{a}, outputs);
  expect_values(outputs[0], {4, 3, 2, 1});
  expect_values(outputs[1], {2, 4, 6, 8});
}

TEST_F(PassesTest, TheSameOutputTwice) {
  const Expr x = input({2});
  const Expr y = exp(x);
  Function f({x}, {y, y, x});
  const std::vector<Array> got = f({doubles({0, 1})});
  EXPECT_TRUE(same_bits(got[0], got[1]));
  expect_values(got[2], {0, 1});
}

TEST_F(PassesTest, ALoopsWeightIsPackedOnce) {
  const Expr x = input({3, 4, 20}), w = input({20, 20});
  const RnnStep step = [&](const Expr& e, const std::vector<Expr>& s) {
    const Expr h = tanh(e + dot(s[0], w));
    return std::pair{h, std::vector<Expr>{h}};
  };
  Function f({x, w}, {rnn(step, x, {fill({3, 20}, 0, DType::kFloat64)}).last_output});
  const std::vector<Array> feeds{random_doubles({3, 4, 20}, 1), random_doubles({20, 20}, 2)};
  const std::string plan = f.describe(feeds);
  EXPECT_EQ(count_lines(plan, "pack_matrix"), 1) << plan;
  EXPECT_LT(first_line(plan, "pack_matrix"), first_line(plan, "loop")) << plan;
  Expr h = fill({3, 20}, 0, DType::kFloat64);
  for (int t = 0; t < 4; ++t) h = tanh(squeeze(slice_axis(x, 1, t, 1), 1) + dot(h, w));
  expect_near(f(feeds)[0], Function({x, w}, {h})(feeds)[0], 1e-12);
}

TEST_F(PassesTest, AdamUsesOneDenseGradientOfATable) {
  const Variable table = variable(random_doubles({6, 2}, 1));
  const Expr indices = placeholder({.shape = {kUnknown}, .dtype = DType::kInt32});
  const Expr loss = sum(square(gather(table, indices)));
  Function f({indices}, {loss}, adam(loss, std::vector<Variable>{table}).updates);
  const std::vector<Array> feeds{Array::from<std::int32_t>({3}, {4, 1, 4})};
  const std::string plan = f.describe(feeds);
  EXPECT_EQ(count_lines(plan, "scatter_rows"), 1) << plan;
  EXPECT_EQ(count_lines(plan, "scatter_sub"), 0) << plan;
}

}  // namespace
}  // namespace syncline::testing
