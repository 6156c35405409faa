// The steps and the memory of a plan.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "ops/graph/op.h"
#include "runtime/schedule/schedule.h"
#include "syncline/backend/config.h"
#include "syncline/backend/control.h"
#include "syncline/backend/convolution.h"
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

class PlanTest : public ::testing::Test {
 protected:
  Expr input(Shape shape) { return placeholder({.shape = std::move(shape), .dtype = DType::kFloat64}); }
  int steps(Function& f, const std::vector<Array>& feeds) { return static_cast<int>(lines(f.describe(feeds)).size()); }
  Session session_;
  SessionScope scope_{session_};
};

TEST_F(PlanTest, ConstantsAreComputedOnce) {
  const Expr x = input({2, 2}), c = constant(doubles(Shape{2, 2}, {1, 2, 3, 4}));
  Function f({x}, {x + dot(exp(c), transpose(c)) * 2.0});
  const std::vector<Array> feeds{doubles(Shape{2, 2}, {0, 0, 0, 0})};
  EXPECT_EQ(steps(f, feeds), 1) << f.describe(feeds);
  EXPECT_EQ(count_lines(f.describe(feeds), "dot"), 0);
  const double e1 = std::exp(1), e2 = std::exp(2), e3 = std::exp(3), e4 = std::exp(4);
  expect_values(f(feeds)[0], {2 * (e1 + 2 * e2), 2 * (3 * e1 + 4 * e2), 2 * (e3 + 2 * e4), 2 * (3 * e3 + 4 * e4)});
}

TEST_F(PlanTest, AConcatenationIsWrittenByTheProgramThatComputesItsParts) {
  const Expr x = input({2, 3}), a = x * 2.0, b = a + 1.0, joined = concatenate({b, a, a * a}, 1);
  Function f({x}, {joined, concatenate({b, a}, 0), b});
  const std::vector<Array> feeds{doubles(Shape{2, 3}, {0, 1, 2, 3, 4, 5})};
  EXPECT_EQ(steps(f, feeds), 1) << f.describe(feeds);
  const std::vector<Array> results = f(feeds);
  expect_values(results[0], {1, 3, 5, 0, 2, 4, 0, 4, 16, 7, 9, 11, 6, 8, 10, 36, 64, 100});
  expect_values(results[1], {1, 3, 5, 7, 9, 11, 0, 2, 4, 6, 8, 10});
  expect_values(results[2], {1, 3, 5, 7, 9, 11});
}

// As Keras's applications pad their images: no padded copy, the bits of one, and gradients by the padded image too.
TEST_F(PlanTest, AConvolutionTakesTheZerosOfItsImage) {
  const Expr x = input({2, 9, 8, 16}), whole = input({2, 11, 10, 16}), w = input({3, 3, 16, 18});
  const auto loss = [&](const Expr& image) { return sum(square(conv2d(image, w, {.strides = {2, 2}}))); };
  const Expr image = spatial_2d_padding(x, {{{1, 1}, {0, 2}}}), padded = loss(image), wanted = loss(whole);
  const std::vector<Array> feeds{random_doubles({2, 9, 8, 16}, 1), random_doubles({3, 3, 16, 18}, 2)};
  Function f({x, w}, {padded, gradients(padded, {w})[0]});
  EXPECT_EQ(count_lines(f.describe(feeds), "pad("), 0) << f.describe(feeds);
  Function with_dx({x, w}, {padded, gradients(padded, {w})[0], gradients(padded, {image})[0]});
  Function g({whole, w}, {wanted, gradients(wanted, {w})[0], gradients(wanted, {whole})[0]});
  const Array zeros = eval(pad(constant(feeds[0]), {0, 1, 0, 0}, {0, 1, 2, 0}));
  const std::vector<Array> some = f(feeds), all = with_dx(feeds), want = g({zeros, feeds[1]});
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(same_bits(all[i], want[i])) << i;
  for (std::size_t i = 0; i < some.size(); ++i) EXPECT_TRUE(same_bits(some[i], want[i])) << i;
}

TEST_F(PlanTest, AllConstantNeedsNoStep) {
  Function f({}, {constant(2, DType::kFloat64, {3}) * 4.0});
  EXPECT_LE(steps(f, {}), 1);
  expect_values(f({})[0], {8, 8, 8});
}

TEST_F(PlanTest, ALoopMultipliesManyRowsPerIterationAndFewRowsAtOnce) {
  const Expr w = input({16, 16});
  auto last_of = [&](const Expr& x, bool unroll) {
    auto step = [&](const Expr& element, const std::vector<Expr>& states) {
      const Expr next = tanh(dot(element, w) + states[0]);
      return std::pair{next, std::vector<Expr>{next}};
    };
    return rnn(step, x, {fill(Shape{x.shape()[0], 16}, 0, DType::kFloat64)}, {.unroll = unroll}).last_output;
  };
  for (const std::int64_t rows : {2, 8}) {
    const Expr x = input({rows, 5, 16});
    Function f({x, w}, {last_of(x, false), last_of(x, true)});
    const std::vector<Array> feeds{random_doubles({rows, 5, 16}, 1), random_doubles({16, 16}, 2)};
    EXPECT_EQ(count_lines(f.describe(feeds), "dot_packed"), rows == 8 ? 1 : 0) << f.describe(feeds);
    const std::vector<Array> results = f(feeds);
    for (std::int64_t i = 0; i < rows * 16; ++i)
      EXPECT_NEAR(results[0].data<double>()[i], results[1].data<double>()[i], 1e-14);
  }
}

TEST_F(PlanTest, RepeatedSubexpressionsAreComputedOnce) {
  const Expr x = input({2, 2}), w = input({2, 2});
  Function f({x, w}, {dot(x, w), sum(dot(x, w)), dot(x, w) * dot(x, w)});
  const std::vector<Array> feeds{random_doubles({2, 2}, 1), random_doubles({2, 2}, 2)};
  EXPECT_EQ(count_lines(f.describe(feeds), "dot"), 1) << f.describe(feeds);
}

TEST_F(PlanTest, WhatNothingNeedsIsNotComputed) {
  const Expr x = input({2, 2});
  const Expr unused = dot(x, x);
  Function f({x, learning_phase()}, {in_train_phase(sum(unused), sum(x))});
  const std::vector<Array> test{random_doubles({2, 2}, 1), Array::scalar(false)};
  const std::vector<Array> train{random_doubles({2, 2}, 1), Array::scalar(true)};
  EXPECT_EQ(count_lines(f.describe(test), "dot"), 0);
  EXPECT_EQ(count_lines(f.describe(train), "dot"), 1);
}

TEST_F(PlanTest, AnElementwiseChainIsOneStep) {
  const Expr x = input({4}), y = input({4});
  Function f({x, y}, {relu(exp(x * 2.0 + y) - sqrt(y)) / 3.0});
  const std::vector<Array> feeds{doubles({1, 2, 3, 4}), doubles({1, 2, 3, 4})};
  EXPECT_EQ(steps(f, feeds), 1) << f.describe(feeds);
}

TEST_F(PlanTest, AnUpdateOfAdamIsOnePass) {
  const Variable w = variable(random_doubles({50}, 1), {.name = "w"});
  const Expr g = input({50});
  const std::vector<Variable> variables{w};
  Function f({g}, {}, adam(sum(w.expr() * g), variables).updates);
  const std::vector<Array> feeds{random_doubles({50}, 2)};
  const std::string plan = f.describe(feeds);
  EXPECT_EQ(count_lines(plan, "float64(50,)"), 1) << plan;
  EXPECT_EQ(count_lines(plan, "assign w"), 0) << plan;
  EXPECT_EQ(count_lines(plan, "assign adam/w"), 0) << plan;
}

TEST_F(PlanTest, AnUpdateOfAdadeltaIsOnePass) {
  const Variable w = variable(random_doubles({50}, 1), {.name = "w"});
  const Expr g = input({50});
  const std::vector<Variable> variables{w};
  Function f({g}, {}, adadelta(sum(w.expr() * g), variables).updates);
  const std::vector<Array> feeds{random_doubles({50}, 2)};
  const std::string plan = f.describe(feeds);
  EXPECT_EQ(count_lines(plan, "float64(50,)"), 1) << plan;
  EXPECT_EQ(count_lines(plan, "assign"), 0) << plan;
}

TEST_F(PlanTest, AChainNeedsTheMemoryOfTwoLinks) {
  const Expr x = input({kUnknown});
  Expr y = x;
  for (int i = 0; i < 20; ++i) y = reverse(y, {0}) * 1.5;
  Function f({x}, {y});
  const std::vector<Array> feeds{random_doubles({1024}, 1)};
  EXPECT_LE(f.arena_bytes(feeds), 2 * 1024 * sizeof(double));
}

TEST_F(PlanTest, AConvolutionOfFewImagesHasTheMemoryOfItsAlgorithm) {
  const Expr x = placeholder({.shape = Shape{kUnknown, 4, 6, 512}, .dtype = DType::kFloat32});
  const Variable w = variable(Array(DType::kFloat32, Shape{3, 3, 512, 512}));
  Function f({x}, {conv2d(x, w, {.padding = "same"})});
  const std::size_t patches = 4 * 6 * 9 * 512 * sizeof(float);
  const std::vector<Array> feeds{Array(DType::kFloat32, Shape{1, 4, 6, 512})};
  EXPECT_LE(f.arena_bytes(feeds), 2 * patches);  // Winograd's transformed kernel alone would take 36 MiB
}

struct WritesBehindItsScratch {
  static constexpr std::string_view kName = "writes_behind_its_scratch";
  using Attrs = NoAttrs;
  static constexpr auto fields = std::tuple{};
  static constexpr NoGradient grad{"a test"};
  static Meta infer(const Attrs&, std::span<const Meta> in) { return in[0]; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static std::size_t scratch(const Attrs&, std::span<const Meta>, std::span<const Meta>) { return 100; }
  static void run(const Attrs&, const KernelArgs& k) {
    std::memcpy(k.out[0], k.in[0], static_cast<std::size_t>(k.out_shape().size()) * size_of(k.out_dtype()));
    static_cast<std::byte*>(k.scratch)[100] = std::byte{1};
  }
};

TEST_F(PlanTest, AWriteBehindTheScratchIsFound) {
  ASSERT_TRUE(verifies_plans());
  const Expr x = input({2});
  Function f({x}, {exp(apply<WritesBehindItsScratch>({x}))});
  EXPECT_NE(message_of<InternalError>([&] {
              f({doubles({1, 2})});
            }).find("wrote behind its scratch"),
            std::string::npos);
}

TEST_F(PlanTest, FiftyThousandElementwiseNodes) {
  const Expr x = input({2});
  Expr y = x;
  for (int i = 0; i < 50000; ++i) y = y + x;
  Function f({x}, {y});
  expect_values(f({doubles({1, 2})})[0], {50001, 100002});
}

TEST_F(PlanTest, FiftyThousandKernelsOneAfterTheOther) {
  const Expr x = input({2});
  Expr y = x;
  for (int i = 0; i < 50000; ++i) y = reverse(y, {0});
  y = y + x;
  Function f({x}, {y});
  expect_values(f({doubles({1, 2})})[0], {2, 4});
}

TEST_F(PlanTest, GradientsOfFiftyThousandNodes) {
  const Expr x = input({1});
  Expr y = x;
  for (int i = 0; i < 25000; ++i) y = sin(y) * 1.0001;
  const Expr g = gradients(sum(y), {x})[0];
  const double got = Function({x}, {g})({doubles({0.5})})[0].item();
  double value = 0.5, wanted = 1;
  for (int i = 0; i < 25000; ++i) {
    wanted *= std::cos(value) * 1.0001;
    value = std::sin(value) * 1.0001;
  }
  EXPECT_NEAR(got, wanted, 1e-9 * std::abs(wanted));
}

TEST_F(PlanTest, FiftyThousandViews) {
  const Expr x = input({2});
  Expr y = x;
  for (int i = 0; i < 25000; ++i) y = reshape(reshape(y, {2, 1}), {2});
  expect_values(Function({x}, {y * 2.0})({doubles({1, 2})})[0], {2, 4});
}

// Many values are alive at once, are read in another order than they are written, and end at different times.
TEST_F(PlanTest, RandomGraphsComputeWhatPlainLoopsCompute) {
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    const Expr x = input({kUnknown});
    const Array start = random_doubles({5}, static_cast<std::uint64_t>(round));
    std::vector<Expr> values{x};
    std::vector<std::vector<double>> wanted{numbers(start)};
    for (int i = 0; i < 60; ++i) {
      const std::size_t a = random() % values.size(), b = random() % values.size();
      std::vector<double> result = wanted[a];
      switch (random() % 4) {
        case 0:
          values.push_back(values[a] * 0.5 + values[b]);
          for (std::size_t k = 0; k < 5; ++k) result[k] = wanted[a][k] * 0.5 + wanted[b][k];
          break;
        case 1:
          values.push_back(reverse(values[a], {0}));
          std::reverse(result.begin(), result.end());
          break;
        case 2:
          values.push_back(sin(values[a]));
          for (double& v : result) v = std::sin(v);
          break;
        default: {
          values.push_back(sin(values[b] + sum(values[a])));
          double total = 0;
          for (const double v : wanted[a]) total += v;
          for (std::size_t k = 0; k < 5; ++k) result[k] = std::sin(wanted[b][k] + total);
        }
      }
      wanted.push_back(std::move(result));
    }
    const std::size_t middle = values.size() / 2;
    const auto out = Function({x}, {values.back(), values[middle], values[3]})({start});
    expect_values(out[0], wanted.back(), 1e-9);
    expect_values(out[1], wanted[middle], 1e-9);
    expect_values(out[2], wanted[3], 1e-9);
  }
}

TEST_F(PlanTest, ALongSumHoldsFewOfItsTermsAtOnce) {
  constexpr std::int64_t kSize = 128, kTerms = 40, kTerm = kSize * kSize * 8;  // bytes
  const Expr x = input({kSize, kSize});
  Expr total = dot(x, variable(random_doubles({kSize, kSize}, 1)).expr());
  for (std::uint64_t i = 2; i <= kTerms; ++i)
    total = total + dot(x, variable(random_doubles({kSize, kSize}, i)).expr());
  Function f({x}, {total});
  const std::vector<Array> feeds{random_doubles({kSize, kSize}, 99)};
  EXPECT_LE(f.arena_bytes(feeds), 11 * kTerm) << f.describe(feeds);  // one program would hold all terms
}

TEST_F(PlanTest, PlansBelongToTheSessionThatMadeThem) {
  const Expr x = input({3});
  Function f({x}, {sum(exp(x))});
  const std::vector<Array> feeds{doubles({0, 0, 0})};
  for (int i = 0; i < 3; ++i) {
    Session other;  // owns an arena
    const SessionScope scope(other);
    expect_values(f(feeds)[0], {3});
  }
  expect_values(f(feeds)[0], {3});
}

TEST_F(PlanTest, TheScheduleBehindEachPassIsWrittenForPeople) {
  const auto folder = std::filesystem::temp_directory_path() / join_text("syncline_plan_", ::getpid());
  ::setenv("SYNCLINE_DUMP_PLAN", folder.c_str(), 1);
  const Expr x = input({2, 3});
  Function({x}, {exp(dot(x, transpose(x))) + 1.0}, {}, "my function")({random_doubles({2, 3}, 1)});
  ::unsetenv("SYNCLINE_DUMP_PLAN");
  std::vector<std::filesystem::path> plans;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) plans.push_back(entry.path());
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_NE(plans[0].filename().string().find("my_function"), std::string::npos) << plans[0];
  const auto text_of = [&](const char* name) {
    std::ifstream file(plans[0] / name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_NE(text_of("00-list_tasks.txt").find("fused exp\n"), std::string::npos);
  EXPECT_NE(text_of("01-fuse.txt").find("fused exp add\n"), std::string::npos);
  EXPECT_NE(text_of("17-lay_out_memory.txt").find("@arena"), std::string::npos);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace syncline::testing
