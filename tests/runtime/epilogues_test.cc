// Programs that run on a kernel's value while the kernel computes it: fewer steps, equal bits.
#include <gtest/gtest.h>

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
#include "syncline/threads.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

class EpiloguesTest : public ::testing::Test {
 protected:
  ~EpiloguesTest() override { set_thread_count(2); }

  Expr input(Shape shape) { return placeholder({.shape = std::move(shape), .dtype = DType::kFloat32}); }

  // Compares a run with one without programs of several operations, and so without epilogues, on one and two threads.
  // Returns the number of epilogues.
  int check(const std::vector<Expr>& inputs, const std::vector<Expr>& outputs) {
    std::vector<Array> feeds;
    for (const Expr& x : inputs) feeds.push_back(random_doubles(x.shape(), feeds.size() + 1).cast(DType::kFloat32));
    session_.set_passes({.simplify = true, .fuse = false});
    const std::vector<Array> want = Function(inputs, outputs)(feeds);
    session_.set_passes({});
    Function f(inputs, outputs);
    for (const int threads : {1, 2}) {
      set_thread_count(threads);
      const std::vector<Array> got = f(feeds);
      for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_TRUE(same_bits(got[i], want[i])) << "output " << i << ", " << threads << " threads\n"
                                                << f.describe(feeds);
    }
    return count_lines(f.describe(feeds), ", then");
  }

  Session session_;
  SessionScope scope_{session_};
};

TEST_F(EpiloguesTest, AProductsBiasAndActivation) {
  const Expr x = input({700, 90}), w = input({90, 130}), b = input({130});
  EXPECT_EQ(check({x, w, b}, {relu(bias_add(dot(x, w), b))}), 1);
  EXPECT_EQ(check({x, w, b}, {tanh(dot(x, w) + b) * 2.0F, b + 1.0F}), 1);
}

TEST_F(EpiloguesTest, SeveralAxesAndViews) {
  const Expr x = input({5, 70, 33}), w = input({33, 64}), other = input({350, 64});
  EXPECT_EQ(check({x, w}, {tanh(dot(x, w))}), 1);
  EXPECT_EQ(check({x, w, other}, {exp(reshape(dot(x, w), {350, 64})) + other}), 1);
  EXPECT_EQ(check({x, w}, {tanh(reshape(dot(x, w), {5, 35, 128}))}), 1);
}

TEST_F(EpiloguesTest, Convolutions) {
  const Expr x = input({3, 20, 22, 18}), b = input({24});
  for (const Shape& kernel : {Shape{1, 1, 18, 24}, Shape{3, 3, 18, 24}, Shape{5, 2, 18, 24}})
    for (const int stride : {1, 2}) {
      const Expr w = input(kernel);
      const Conv2DOptions options{.strides = {stride, stride}, .padding = "same"};
      EXPECT_EQ(check({x, w, b}, {relu(bias_add(conv2d(x, w, options), b))}), 1);
      EXPECT_GE(check({x, w}, gradients(sum(square(tanh(conv2d(tanh(x), w, options)))), {x, w})), 1);
    }
  const Expr pixels = input({2, 30, 31, 3}), few = input({3, 3, 3, 16});
  EXPECT_EQ(check({pixels, few}, {tanh(conv2d(pixels, few))}), 1);
  const Expr each = input({3, 3, 18, 1});
  EXPECT_EQ(check({x, each}, {relu(depthwise_conv2d(x, each))}), 1);
}

// The kernel's value is read again later, or returned.
TEST_F(EpiloguesTest, AValueThatOthersReadToo) {
  const Expr x = input({200, 80}), w = input({80, 96}), v = input({96, 40});
  const Expr product = dot(x, w);
  EXPECT_EQ(check({x, w, v}, {dot(tanh(product), v), dot(product, v), product}), 1);
  EXPECT_EQ(check({x, w}, {tanh(product), product}), 1);
  EXPECT_EQ(check({x, w}, {product * product + tanh(product)}), 1);
  EXPECT_EQ(check({x, w}, gradients(sum(tanh(product)), {x, w})), 1);
}

// Programs that need other elements than those that are ready.
TEST_F(EpiloguesTest, ProgramsOverOtherElements) {
  const Expr x = input({60, 50}), w = input({50, 64}), column = input({50, 1}), rows = input({4, 60, 64});
  const Expr product = dot(x, w);
  EXPECT_EQ(check({x, w, rows}, {product + rows}), 0);
  EXPECT_EQ(check({x, w, column}, {dot(x, column) * dot(x, w)}), 1);
  EXPECT_EQ(check({x, w}, {slice_axis(product, 1, 0, 32) * slice_axis(product, 1, 32, 32)}), 0);
  EXPECT_EQ(check({x, w}, {product + slice_axis(product, 0, 3, 1)}), 0);
  EXPECT_EQ(check({x, w}, {product + transpose(dot(transpose(w), transpose(x)))}), 1);
}

// A kernel reads its operands while the program writes.
TEST_F(EpiloguesTest, OperandsThatTheProgramReadsLast) {
  const Expr x = input({300, 300}), w = input({300, 300});
  const Expr h = exp(x * 0.1F);
  EXPECT_EQ(check({x, w}, {tanh(dot(h, w)) + h}), 1);
  EXPECT_EQ(check({x, w}, {h + dot(w, h)}), 1);
}

TEST_F(EpiloguesTest, AVariableThatTheKernelReads) {
  const Array x = random_doubles({128, 128}, 1).cast(DType::kFloat32);
  const Array begin = random_doubles({128, 128}, 2).cast(DType::kFloat32);
  std::vector<Array> after;
  for (const bool fuse : {false, true}) {
    session_.set_passes({.simplify = true, .fuse = fuse});
    const Variable v = variable(begin);
    Function f({}, {}, {update(v, v.expr() + dot(constant(x), v) * 0.01F)});
    f({});
    f({});
    after.push_back(get_value(v));
  }
  EXPECT_TRUE(same_bits(after[0], after[1]));
}

TEST_F(EpiloguesTest, LoopsAndBranches) {
  const Expr x = input({6, 7, 20}), w = input({20, 20}), one = input({});
  const RnnStep step = [&](const Expr& e, const std::vector<Expr>& s) {
    const Expr h = tanh(dot(e, w) + dot(s[0], w));
    return std::pair{h, std::vector<Expr>{h}};
  };
  check({x, w}, {rnn(step, x, {fill({6, 20}, 0, DType::kFloat32)}).last_output});
  const Expr chosen = switch_(
      greater(one, constant(0.5, DType::kFloat32)), [&] { return tanh(dot(x, w)); }, [&] { return dot(x, w) * 0.5F; });
  check({x, w, one}, {chosen});
}

TEST_F(EpiloguesTest, NoElements) {
  const Expr x = input({0, 8}), w = input({8, 20}), thin = input({30, 0}), none = input({0, 20});
  EXPECT_EQ(check({x, w}, {tanh(dot(x, w))}), 1);
  EXPECT_EQ(check({thin, none}, {dot(thin, none) + 1.0F}), 1);
  const Expr images = input({0, 5, 5, 3}), kernel = input({3, 3, 3, 8});
  EXPECT_EQ(check({images, kernel}, {tanh(conv2d(images, kernel))}), 1);
}

}  // namespace
}  // namespace syncline::testing
