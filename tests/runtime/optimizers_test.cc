// Optimizers against Keras 2.3.1's formulas (keras/optimizers.py) as plain loops, for six steps in float64.
#include "syncline/training/optimizers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "syncline/backend/function.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/session.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

constexpr int kSteps = 6;
constexpr double kEpsilon = 1e-7;

// loss = sum(t * w^2 + w * t), with another t in each step; the gradient is t * (2 w + 1).
double gradient(double w, double t) { return t * (2 * w + 1); }
Array targets(int step) { return random_doubles({7}, 100 + static_cast<std::uint64_t>(step)); }

class OptimizersTest : public ::testing::Test {
 protected:
  OptimizersTest() : w(variable(random_doubles({7}, 3), {.name = "w"})) {
    t = placeholder({.shape = {7}, .dtype = DType::kFloat64});
    loss = sum(t * square(w) + w.expr() * t);
  }

  // `step(s, i, p, g)` is the plain loop's body: in step s it updates p, the value of element i, by the gradient g.
  template <class Plain>
  void compare(const Optimizer& optimizer, Plain&& step) {
    Function f({t}, {loss}, optimizer.updates);
    std::vector<double> wanted = numbers(get_value(w));
    for (int s = 0; s < kSteps; ++s) {
      const std::vector<double> target = numbers(targets(s));
      f({targets(s)});
      for (std::size_t i = 0; i < wanted.size(); ++i) step(s, i, wanted[i], gradient(wanted[i], target[i]));
      expect_values(get_value(w), wanted, 1e-12);
    }
    EXPECT_EQ(get_value(optimizer.weights.at(0)).item(), kSteps);
  }

  Session session_;
  SessionScope scope_{session_};
  Variable w;
  Expr t, loss;
  std::vector<double> a = std::vector<double>(7), b = std::vector<double>(7);  // the plain loop's accumulators
};

TEST_F(OptimizersTest, Sgd) {
  const std::vector<Variable> variables{w};
  const Optimizer o = sgd(loss, variables, {.learning_rate = 0.05});
  EXPECT_EQ(o.weights.size(), 1u);
  compare(o, [](int, std::size_t, double& p, double g) { p -= 0.05 * g; });
}

TEST_F(OptimizersTest, SgdDefaults) {
  const std::vector<Variable> variables{w};
  compare(sgd(loss, variables), [](int, std::size_t, double& p, double g) { p -= 0.01 * g; });
}

TEST_F(OptimizersTest, SgdWithMomentum) {
  const std::vector<Variable> variables{w};
  const Optimizer o = sgd(loss, variables, {.learning_rate = 0.05, .momentum = 0.9});
  compare(o, [&](int, std::size_t i, double& p, double g) {
    a[i] = 0.9 * a[i] - 0.05 * g;
    p += a[i];
  });
  expect_values(get_value(o.weights.at(1)), a);
}

TEST_F(OptimizersTest, SgdNesterov) {
  const std::vector<Variable> variables{w};
  compare(sgd(loss, variables, {.learning_rate = 0.05, .momentum = 0.9, .nesterov = true}),
          [&](int, std::size_t i, double& p, double g) {
            a[i] = 0.9 * a[i] - 0.05 * g;
            p += 0.9 * a[i] - 0.05 * g;
          });
}

TEST_F(OptimizersTest, Rmsprop) {
  const std::vector<Variable> variables{w};
  const Optimizer o = rmsprop(loss, variables);
  compare(o, [&](int, std::size_t i, double& p, double g) {
    a[i] = 0.9 * a[i] + (1 - 0.9) * g * g;
    p -= 0.001 * g / (std::sqrt(a[i]) + kEpsilon);
  });
  expect_values(get_value(o.weights.at(1)), a);
}

TEST_F(OptimizersTest, Adam) {
  const std::vector<Variable> variables{w};
  const Optimizer o = adam(loss, variables);
  compare(o, [&](int s, std::size_t i, double& p, double g) {
    const double lr = 0.001 * std::sqrt(1 - std::pow(0.999, s + 1)) / (1 - std::pow(0.9, s + 1));
    a[i] = 0.9 * a[i] + (1 - 0.9) * g;
    b[i] = 0.999 * b[i] + (1 - 0.999) * g * g;
    p -= lr * a[i] / (std::sqrt(b[i]) + kEpsilon);
  });
  expect_values(get_value(o.weights.at(1)), a);
  expect_values(get_value(o.weights.at(2)), b);
}

TEST_F(OptimizersTest, Adadelta) {
  const std::vector<Variable> variables{w};
  const Optimizer o = adadelta(loss, variables);
  compare(o, [&](int, std::size_t i, double& p, double g) {
    a[i] = 0.95 * a[i] + (1 - 0.95) * g * g;
    const double change = g * std::sqrt(b[i] + kEpsilon) / std::sqrt(a[i] + kEpsilon);
    p -= change;
    b[i] = 0.95 * b[i] + (1 - 0.95) * change * change;
  });
  expect_values(get_value(o.weights.at(1)), a);
  expect_values(get_value(o.weights.at(2)), b);
}

TEST_F(OptimizersTest, TheLearningRateCanBeSet) {
  const std::vector<Variable> variables{w};
  const Optimizer o = sgd(loss, variables, {.learning_rate = 0.05});
  Function f({t}, {}, o.updates);
  f({targets(0)});
  const Array before = get_value(w);
  set_value(o.learning_rate, Array::scalar(0.0));
  f({targets(1)});
  EXPECT_TRUE(same_bits(before, get_value(w)));
}

TEST_F(OptimizersTest, TheLossIsTheOneBeforeTheUpdate) {
  const std::vector<Variable> variables{w};
  Function f({t}, {loss}, sgd(loss, variables).updates), evaluate({t}, {loss});
  const Array wanted = evaluate({targets(0)})[0];
  EXPECT_DOUBLE_EQ(f({targets(0)})[0].item(), wanted.item());
}

TEST_F(OptimizersTest, AVariableThatTheLossDoesNotKnowIsNamed) {
  const Variable stranger = variable(doubles({1}), {.name = "stranger"});
  const std::vector<Variable> variables{w, stranger};
  const auto text = message_of<ValueError>([&] { adam(loss, variables); });
  EXPECT_NE(text.find("stranger"), std::string::npos) << text;
}

TEST_F(OptimizersTest, SeveralVariablesSeeOneAnothersOldValues) {
  const Variable u = variable(doubles({2})), v = variable(doubles({3}));
  const std::vector<Variable> variables{u, v};
  Function f({}, {}, sgd(sum(u.expr() * v.expr()), variables, {.learning_rate = 0.1}).updates);
  f({});
  expect_values(get_value(u), {2 - 0.1 * 3});
  expect_values(get_value(v), {3 - 0.1 * 2});
}

}  // namespace
}  // namespace syncline::testing
