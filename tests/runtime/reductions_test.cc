// Reductions take the elements of elementwise programs while these are in the cache, and share passes over memory. The
// bits are those of the reduction of a stored value.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "syncline/backend/core.h"
#include "syncline/backend/function.h"
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

class Reductions : public ::testing::Test {
 protected:
  Expr input(Shape shape) { return placeholder({.shape = std::move(shape), .dtype = DType::kFloat64}); }

  // The plan's text. Its values have the bits of a plan without fusion.
  std::string plan_of(const std::vector<Expr>& inputs, const std::vector<Expr>& outputs,
                      const std::vector<Array>& feeds) {
    Function fused(inputs, outputs);
    const std::vector<Array> got = fused(feeds);
    std::string plan = fused.describe(feeds);
    session_.set_passes({.simplify = true, .fuse = false});
    const std::vector<Array> wanted = Function(inputs, outputs)(feeds);
    session_.set_passes({});
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], wanted[i])) << i << '\n' << plan;
    return plan;
  }

  Session session_;
  SessionScope scope_{session_};
};

TEST_F(Reductions, TheOperandIsNotStored) {
  const Expr x = input({300, 7}), row = input({7});
  const std::vector<Array> feeds{random_doubles({300, 7}, 1), random_doubles({7}, 2)};
  for (const Axes& axes : {Axes{0}, Axes{1}, Axes{0, 1}}) {
    const std::string plan = plan_of({x, row}, {sum(square(x - row), axes), max(x * row, axes)}, feeds);
    EXPECT_EQ(count_lines(plan, "reduce sub square sum"), 1) << plan;
    EXPECT_EQ(count_lines(plan, "reduce mul max"), 1) << plan;
    EXPECT_EQ(lines(plan).size(), 2u) << plan;
  }
}

TEST_F(Reductions, AValueWithOtherReadersIsStoredInTheSamePass) {
  const Expr x = input({50, 8}), y = input({50, 8}), w = input({8, 3});
  const std::vector<Array> feeds{random_doubles({50, 8}, 1), random_doubles({50, 8}, 2), random_doubles({8, 3}, 3)};
  const Expr z = x * y;
  const std::string plan = plan_of({x, y, w}, {sum(z, {0}), dot(z, w)}, feeds);
  EXPECT_EQ(count_lines(plan, "reduce mul sum"), 1) << plan;
  EXPECT_EQ(lines(plan).size(), 2u) << plan;
}

TEST_F(Reductions, EqualReductionsOfNeighboursShareAPass) {
  const Expr x = input({400, 5}), y = input({400, 5}), w = input({5, 5});
  const std::vector<Array> feeds{random_doubles({400, 5}, 1), random_doubles({400, 5}, 2), random_doubles({5, 5}, 3)};
  const Expr h = dot(x, w);  // an operand in memory
  const std::string plan = plan_of({x, y, w}, {sum(h * y, {0}), sum(h, {0}), sum(h - y, {0})}, feeds);
  EXPECT_EQ(count_lines(plan, "reduce"), 1) << plan;
  EXPECT_EQ(count_lines(plan, "sum"), 1) << plan;
  // Over other axes, and other reductions.
  const std::string others = plan_of({x, y, w}, {sum(h * y, {0}), sum(h - y, {1}), max(h + y, {0})}, feeds);
  EXPECT_EQ(count_lines(others, "reduce"), 3) << others;
}

// The stored value may lie where an operand was, but not where a reduction still reads.
TEST_F(Reductions, AnOperandThatIsReducedIsNotOverwritten) {
  const Expr x = input({40, 6}), w = input({6, 6});
  const std::vector<Array> feeds{random_doubles({40, 6}, 1), random_doubles({6, 6}, 2)};
  const Expr h = dot(x, w), doubled = h * 2.0;
  const std::string plan = plan_of({x, w}, {sum(h, {0}), sum(square(doubled), {0}), dot(doubled, w)}, feeds);
  EXPECT_EQ(count_lines(plan, "reduce"), 1) << plan;
}

// A pass of its own can be moved behind tasks that may fail.
TEST_F(Reductions, AVariableIsUpdatedInAPassOfItsOwn) {
  const Variable v = variable(doubles(Shape{2, 3}, {1, 2, 3, 4, 5, 6}));
  const Expr next = v.expr() * 2.0;
  Function f({}, {sum(square(next), {0})}, {update(v, next)});
  for (const double factor : {1.0, 4.0, 16.0}) expect_values(f({})[0], {68 * factor, 116 * factor, 180 * factor});
  expect_values(get_value(v), {8, 16, 24, 32, 40, 48});
  const std::string plan = f.describe(std::vector<Array>{});
  EXPECT_EQ(count_lines(plan, "assign"), 0) << plan;
}

TEST_F(Reductions, ThousandsOfColumnsAreReducedFromMemory) {
  const Expr x = input({9, 3000});
  const std::string plan = plan_of({x}, {sum(square(x), {0})}, {random_doubles({9, 3000}, 1)});
  EXPECT_EQ(count_lines(plan, "fused square"), 1) << plan;
}

TEST_F(Reductions, NoElements) {
  const Expr x = input({0, 4}), y = input({4, 0});
  const std::string plan = plan_of({x, y}, {sum(square(x), {0}), sum(square(y), {1})},
                                   {Array(DType::kFloat64, {0, 4}), Array(DType::kFloat64, {4, 0})});
  EXPECT_EQ(count_lines(plan, "reduce square sum"), 2) << plan;
}

// A value that both sides of a pass over memory need is computed twice where that takes no other operand.
class Recomputed : public Reductions {
 protected:
  static constexpr std::int64_t kRows = 4000, kColumns = 40;  // 1.3 MB of float64
  const Expr x_ = input({kRows, kColumns}), y_ = input({kRows, kColumns}), row_ = input({kColumns}),
             w_ = input({kColumns, 3});
  const std::vector<Expr> inputs_{x_, y_, row_, w_};
  const std::vector<Array> feeds_{random_doubles({kRows, kColumns}, 1), random_doubles({kRows, kColumns}, 2),
                                  random_doubles({kColumns}, 3), random_doubles({kColumns, 3}, 4)};
};

TEST_F(Recomputed, ADifferenceFromTheMean) {
  const Expr d = x_ - row_;
  const std::string plan = plan_of(inputs_, {d * sqrt(mean(square(d), {0}))}, feeds_);
  EXPECT_EQ(count_lines(plan, "reduce sub square sum"), 1) << plan;
  EXPECT_EQ(count_lines(plan, "fused sub mul"), 1) << plan;
  EXPECT_EQ(count_lines(plan, "-> float64(4000, 40)"), 1) << plan;
}

TEST_F(Recomputed, NotAResultThatAnotherKernelReads) {
  const Expr d = x_ - row_;
  const std::string plan = plan_of(inputs_, {d * sqrt(mean(square(d), {0})), dot(d, w_)}, feeds_);
  EXPECT_EQ(count_lines(plan, "fused sub"), 0) << plan;
}

TEST_F(Recomputed, OneNumberARowIfBlocksDivideRows) {
  for (const std::int64_t columns : {60, 1021 /* a prime number */, 1020}) {
    const Expr x = input({2000, columns}), d = x - mean(x, {1}, true);
    const std::string plan = plan_of({x}, {d * sqrt(mean(square(d), {1}, true))}, {random_doubles({2000, columns}, 1)});
    EXPECT_EQ(count_lines(plan, "fused sub mul"), columns == 1020 ? 1 : 0) << plan;
  }
}

TEST_F(Recomputed, NotASmallValue) {
  const Expr x = input({400, 40}), d = x - row_;
  const std::string plan =
      plan_of({x, row_}, {d * sqrt(mean(square(d), {0}))}, {random_doubles({400, 40}, 1), feeds_[2]});
  EXPECT_EQ(count_lines(plan, "fused sub"), 0) << plan;
}

TEST_F(Recomputed, NotFromTwoOtherOperands) {
  const Expr d = x_ * y_;
  const std::string plan = plan_of(inputs_, {d * sqrt(mean(square(d), {0}))}, feeds_);
  EXPECT_EQ(count_lines(plan, "fused mul mul"), 0) << plan;
}

TEST_F(Recomputed, NotAFunctionThatTakesLong) {
  const Expr d = exp(x_);
  const std::string plan = plan_of(inputs_, {d * sqrt(mean(square(d), {0}))}, feeds_);
  EXPECT_EQ(count_lines(plan, "fused exp"), 0) << plan;

  const Expr x = placeholder({.shape = {kRows, kColumns}, .dtype = DType::kFloat32}), y = tanh(x);
  const Array feed = Array::from<float>({kRows, kColumns}, std::vector<float>(kRows * kColumns, 0.5F));
  const std::string of_float32 = plan_of({x}, {y * sqrt(mean(square(y), {0}))}, {feed});
  EXPECT_EQ(count_lines(of_float32, "fused tanh mul"), 0) << of_float32;
  EXPECT_EQ(count_lines(of_float32, "reduce tanh square sum"), 1) << of_float32;
}

// Four readers of a value of four additions would add as long as they would read.
TEST_F(Recomputed, NotFourAdditionsForManyReaders) {
  const Expr d = square(square(square(x_ - row_)));
  Expr y = d;
  for (int i = 0; i < 5; ++i) y = d * sqrt(mean(square(y), {0}));
  const std::string plan = plan_of(inputs_, {y}, feeds_);
  EXPECT_EQ(count_lines(plan, "sub square square square"), 1) << plan;
}

// The elementwise node of a pass moves away: a reduction of an operand is left, which is no program.
TEST_F(Recomputed, BesideAReductionOfTheOperand) {
  const Expr d = x_ * 2.0, most = max(x_, {0});
  std::vector<Expr> outputs{most, d * sqrt(mean(exp(d + most), {0}))};
  const std::string plan = plan_of(inputs_, outputs, feeds_);
  EXPECT_EQ(count_lines(plan, "reduce"), 1) << plan;
  EXPECT_EQ(count_lines(plan, "max"), 1) << plan;
  outputs.push_back(dot(d, w_));
  const std::string stored = plan_of(inputs_, outputs, feeds_);
  EXPECT_EQ(count_lines(stored, "reduce mul max"), 1) << stored;
}

TEST_F(Recomputed, NotBesideTwoReductionsOfOperands) {
  const Expr d = x_ + y_, most = max(x_, {0}), other = max(y_, {0});
  const std::string plan = plan_of(inputs_, {most, other, d * sqrt(mean(exp(d + most) * x_, {0})) + y_}, feeds_);
  EXPECT_EQ(count_lines(plan, "reduce add max max"), 1) << plan;
}

class NormalizedBatch : public Reductions {
 protected:
  const Expr x_ = input({30, 4, 5}), gamma_ = input({5}), beta_ = input({5}), w_ = input({30, 4, 5});
  const std::vector<Expr> inputs_{x_, gamma_, beta_, w_};
  const std::vector<Array> feeds_{random_doubles({30, 4, 5}, 1), random_doubles({5}, 2), random_doubles({5}, 3),
                                  random_doubles({30, 4, 5}, 4)};
  Expr loss() const { return sum(w_ * relu(normalize_batch_in_training(x_, gamma_, beta_, {0, 1}, 1e-3).normalized)); }
};

// The mean; the variance; the output with the gradients of beta and gamma; dx, whose sum follows from the gradient of
// beta.
TEST_F(NormalizedBatch, FourPassesOverTheActivation) {
  const std::vector<Expr> outputs = gradients(loss(), {x_, gamma_, beta_});
  const std::string plan = plan_of(inputs_, outputs, feeds_);
  EXPECT_EQ(count_lines(plan, "float64(30, 4, 5)"), 4) << plan;
}

TEST_F(NormalizedBatch, GradientsAreThoseWithoutRewrites) {
  const std::vector<Expr> first = gradients(loss(), {x_, gamma_, beta_});
  const std::vector<Expr> second = gradients(sum(square(first[0])), {x_, gamma_, w_});
  std::vector<Expr> outputs = first;
  outputs.insert(outputs.end(), second.begin(), second.end());
  const std::vector<Array> got = Function(inputs_, outputs)(feeds_);
  session_.set_passes({.simplify = false, .fuse = false});
  const std::vector<Array> wanted = Function(inputs_, outputs)(feeds_);
  for (std::size_t i = 0; i < got.size(); ++i) expect_near(got[i], wanted[i], 1e-12);
}

// The sums of two large terms lose the digits of their difference.
TEST_F(Reductions, ADifferenceIsSummedAsItIs) {
  const Expr x = placeholder({.shape = {1000, 3}}), y = placeholder({.shape = {1000, 3}});
  Array a(DType::kFloat32, {1000, 3}), b(DType::kFloat32, {1000, 3});
  for (std::int64_t i = 0; i < 3000; ++i) {
    a.data<float>()[i] = 1e7f + static_cast<float>(i % 7);
    b.data<float>()[i] = 1e7f;
  }
  const std::vector<Array> got = Function({x, y}, {sum(x), sum(y), sum(x - y)})({a, b});
  EXPECT_EQ(got[2].item(), 3000 / 7 * 21 + 0 + 1 + 2 + 3);
}

TEST_F(Reductions, LongChainsOfTerms) {
  const Expr x = input({2});
  Expr y = x;
  for (int i = 0; i < 50000; ++i) y = y + x;
  expect_values(Function({x}, {sum(y), sum(x)})({doubles({1, 2})})[0], {150003});
}

TEST_F(Reductions, OtherOperands) {
  const Expr x = input({700, 8}), row = input({8}), small = cast(x, DType::kFloat16);
  const std::vector<Array> feeds{random_doubles({700, 8}, 1), random_doubles({8}, 2)};
  const Expr half = fill(Shape{700, 8}, 0.5, DType::kFloat64);
  plan_of({x, row}, {any(greater(x, row), {0}), all(less(x, row), {1}), any(greater(x, row), {0, 1})}, feeds);
  plan_of({x, row}, {sum(cast(small, DType::kFloat64) * row, {0}), max(cast(small, DType::kFloat32), {1})}, feeds);
  plan_of({x, row}, {sum(square(slice_axis(x, 1, 2, 4)), {0}), sum(slice_axis(x, 0, 100, 300) * row, {1})}, feeds);
  plan_of({x, row}, {sum(x * half, {1}), sum(half, {1}), sum(half)}, feeds);
  plan_of({x, row}, {sum(reshape(x * row, {70, 80}), {0}), sum(x * row, {0}, true)}, feeds);
}

TEST_F(Reductions, WithoutRewrites) {
  session_.set_passes({.simplify = false, .fuse = true});
  const Expr x = input({5, 1});
  const Array feed = random_doubles({5, 1}, 1);
  const std::vector<Array> same =
      Function({x}, {sum(x, {0}), sum(x, {0}), sum(square(x), {0}), sum(square(x), {0})})({feed});
  EXPECT_TRUE(same_bits(same[0], same[1]));
  EXPECT_TRUE(same_bits(same[2], same[3]));
  const Expr kept = sum(x, {1}, true), fills = fill(Shape{5, 1}, 0.5, DType::kFloat64);
  const std::vector<Array> got = Function({x}, {kept * 2.0, kept + x, sum(x * fills), sum(fills)})({feed});
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(numbers(got[0])[i], 2 * numbers(feed)[i]);
    EXPECT_EQ(numbers(got[1])[i], 2 * numbers(feed)[i]);
  }
  EXPECT_EQ(got[3].item(), 2.5);
}

TEST_F(Reductions, AnInfiniteElementIsSeenInTheGradientOfItsVariance) {
  const Expr x = input({4});
  Array feed = random_doubles({4}, 1);
  feed.data<double>()[2] = std::numeric_limits<double>::infinity();
  const std::vector<Array> got = Function({x}, gradients(var(x), {x}))({feed});
  for (const double value : numbers(got[0])) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace syncline::testing
