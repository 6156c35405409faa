// switch_: the side that is computed, on one and on several ranks; errors. tests/ops/cases_choice.cc has the values.
#include <gtest/gtest.h>

#include <cmath>

#include "comm/local/local_communicator.h"
#include "syncline/backend/control.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/random.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/session.h"
#include "syncline/training/optimizers.h"

namespace syncline {
namespace {

using Exprs = std::vector<Expr>;

class Switch : public ::testing::Test {
 protected:
  Session session_{3};
  SessionScope scope_{session_};
};

Array doubles(const Shape& shape, std::vector<double> values) { return Array::from<double>(shape, values); }

Array counted(const Shape& shape, double first) {
  Array a(DType::kFloat64, shape);
  for (std::int64_t i = 0; i < a.size(); ++i) a.data<double>()[i] = first + static_cast<double>(i * 37 % 19) / 19;
  return a;
}

Expr positive(const Expr& x) { return greater(sum(x), scalar_like(0, x)); }

template <class E>
void expect_refused(const std::function<void()>& call, const std::string& part) {
  try {
    call();
    ADD_FAILURE() << "not refused; expected a message with: " << part;
  } catch (const E& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST_F(Switch, RefusesWhatDoesNotFit) {
  auto of = [](Shape shape, DType dtype = DType::kFloat32) {
    return placeholder({.shape = std::move(shape), .dtype = dtype});
  };
  const Expr x = of({5, 3}), scalar = of({}, DType::kInt32);
  expect_refused<ValueError>(
      [&] {
        switch_(of({5, 3, 1}), x, x);
      },
      "Rank of condition should be less than or equal to rank of then and else expressions");
  expect_refused<ShapeError>([&] { switch_(of({5}), x, of({5})); }, "(5, 3) and else_expression (5,)");
  expect_refused<ShapeError>([&] { switch_(of({4}), x, x); }, "(4,) does not fit");
  expect_refused<ShapeError>([&] { switch_(of({5, 3}), of({5, 1}), of({5, 1})); }, "does not fit");
  expect_refused<ShapeError>([&] { switch_(scalar, x, of({5, 4})); }, "must have the same shape");
  expect_refused<ShapeError>(
      [&] {
        switch_(
            scalar, [&] { return x; }, [&] { return of({3}); });
      },
      "the same shape");
  expect_refused<DTypeError>([&] { switch_(scalar, x, of({5, 3}, DType::kInt32)); }, "cast one of them");
  expect_refused<ValueError>(
      [&] {
        switch_(
            scalar, [&] { return Expr{}; }, x);
      },
      "returned no tensor");
}

TEST_F(Switch, OnlyTheTakenSideRuns) {
  const Expr x = placeholder({.shape = {2}, .dtype = DType::kFloat64});
  const Expr table = placeholder({.shape = {3, 2}, .dtype = DType::kFloat64});
  const Expr index = placeholder({.shape = {1}, .dtype = DType::kInt32});
  // Only one side gathers the row; there an index outside the table is an error.
  const Expr y = switch_(
      positive(x), [&] { return squeeze(gather(table, index), 0) * 2.0; }, x);
  Function f({x, table, index}, {y, gradients(sum(y), {x})[0], gradients(sum(y), {table})[0]});
  const Array t = counted({3, 2}, 1), wrong = Array::from<std::int32_t>({1}, {9});
  const auto results = f({doubles({2}, {-1, 0}), t, wrong});
  EXPECT_EQ(results[0].data<double>()[0], -1);
  EXPECT_EQ(results[1].data<double>()[1], 1);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(results[2].data<double>()[i], 0);
  EXPECT_THROW(f({doubles({2}, {1, 0}), t, wrong}), ValueError);
  const auto taken = f({doubles({2}, {1, 0}), t, Array::from<std::int32_t>({1}, {2})});
  EXPECT_EQ(taken[0].data<double>()[1], 2 * t.data<double>()[5]);
  EXPECT_EQ(taken[1].data<double>()[0], 0);
  EXPECT_EQ(taken[2].data<double>()[4], 2);
}

TEST_F(Switch, ForwardAndGradientShareTheirWork) {
  const Expr x = placeholder({.shape = {4, 4}, .dtype = DType::kFloat64});
  const Expr y = switch_(
      positive(x), [&] { return exp(dot(x, x)); }, [&] { return x; });
  Function f({x}, {y, gradients(sum(y), {x})[0]});
  const Array feed = counted({4, 4}, 0);
  const std::string plan = f.describe({&feed, 1});
  std::size_t products = 0;
  for (std::size_t at = plan.find("dot("); at != std::string::npos; at = plan.find("dot(", at + 1)) ++products;
  EXPECT_EQ(products, 2u) << plan;  // x x forward, and its gradient with respect to the left factor
  EXPECT_NE(plan.find("if, "), std::string::npos) << plan;
}

// A side that is not taken adds nothing to the gradient, even if its derivative is infinite.
TEST_F(Switch, TheOtherSidesGradientIsZero) {
  const Expr x = placeholder({.shape = {2}, .dtype = DType::kFloat64});
  const Expr y = switch_(
      positive(x), [&] { return log(x); }, [&] { return x * 3.0; });
  const auto results = Function({x}, {gradients(sum(y), {x})[0]})({doubles({2}, {0, 0})});
  EXPECT_EQ(results[0].data<double>()[0], 3);
}

// The gradient of the side that is not taken has the shape of the other side.
TEST_F(Switch, RefusesTheGradientOfAnotherShape) {
  const Expr x = placeholder({.shape = {kUnknown, 1}}), mean = placeholder({.shape = {3}}),
             alt = placeholder({.shape = {3, 3}}), flag = placeholder({.shape = {}, .dtype = DType::kBool});
  const Expr drawn = truncated_normal({dim(x, 0), 3}, RandomKey{1, 2}, mean, mean * mean);
  Function f({x, mean, alt, flag}, gradients(sum(square(switch_(flag, drawn, alt))), {mean}));
  const auto with_rows = [&](std::int64_t rows) {
    const auto zeros = [](const Shape& shape) { return Array(DType::kFloat32, shape); };
    return f({zeros({rows, 1}), zeros({3}), zeros({3, 3}), Array::scalar(false)});
  };
  EXPECT_EQ(with_rows(3)[0].data<float>()[2], 0);
  expect_refused<ShapeError>([&] { with_rows(2); }, "truncated_normal: the result has the shape (2, 3)");
}

TEST_F(Switch, AKnownConditionLeavesOneSideInThePlan) {
  const Expr x = placeholder({.shape = {2}, .dtype = DType::kFloat64});
  const Expr unfed = placeholder({.shape = {2}, .dtype = DType::kFloat64});
  const Expr flag = placeholder({.shape = {}, .dtype = DType::kBool});
  Function f({x, flag}, {switch_(
                            flag, [&] { return x * unfed; }, [&] { return x + 1.0; })});
  EXPECT_EQ(f({doubles({2}, {1, 2}), Array::scalar(false)})[0].data<double>()[1], 3);
  EXPECT_THROW(f({doubles({2}, {1, 2}), Array::scalar(true)}), ValueError);
}

// The side that is not taken may have no shape: it is not fed, or its operands do not fit.
TEST_F(Switch, AKnownConditionNeedsNoOtherSideInTheGradient) {
  const Expr x = placeholder({.shape = {kUnknown, 3}, .dtype = DType::kFloat64});
  const Expr c = placeholder({.shape = {kUnknown, 3}, .dtype = DType::kFloat64});
  const Expr flag = placeholder({.shape = {}, .dtype = DType::kBool});
  const std::vector<Expr> slope = gradients(sum(switch_(flag, x + c, x * 2.0)), {x});
  const Array rows = counted({2, 3}, 1), others = counted({5, 3}, 1);
  EXPECT_EQ(Function({x, flag}, slope)({rows, Array::scalar(false)})[0].data<double>()[5], 2);
  EXPECT_EQ(Function({x, c, flag}, slope)({rows, others, Array::scalar(false)})[0].data<double>()[5], 2);
}

TEST_F(Switch, TheGradientDrawsWhatTheForwardSideDrew) {
  const Expr x = placeholder({.shape = {100}, .dtype = DType::kFloat64});
  const Expr y = switch_(
      positive(x),
      [&] {
        return dropout(x, 0.5, {3, 1});
      },
      x);
  const auto results = Function({x}, {y, gradients(sum(y), {x})[0]})({counted({100}, 1)});
  int kept = 0;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(results[0].data<double>()[i] != 0, results[1].data<double>()[i] != 0);
    kept += results[0].data<double>()[i] != 0;
  }
  EXPECT_GT(kept, 10);
  EXPECT_LT(kept, 90);
}

TEST_F(Switch, UpdatesTakeOneSide) {
  const Variable w = variable(doubles({2}, {1, 2}));
  const Expr x = placeholder({.shape = {2}, .dtype = DType::kFloat64});
  Function f({x}, {},
             {update(w, switch_(
                            positive(x), [&] { return w + x; }, w.expr()))});
  f({doubles({2}, {-1, -1})});
  EXPECT_EQ(get_value(w).data<double>()[1], 2);
  f({doubles({2}, {1, 1})});
  EXPECT_EQ(get_value(w).data<double>()[1], 3);
}

// A size known on one side only is unknown in the result, because a fed condition may take the other side.
TEST_F(Switch, ASizeThatOneSideKnowsIsNotTheResults) {
  const Expr x = placeholder({.shape = {kUnknown, 2}, .dtype = DType::kFloat64});
  const Expr w = placeholder({.shape = {2, 2, 1}, .dtype = DType::kFloat64});
  const Expr taken = placeholder({.shape = {}, .dtype = DType::kBool}), y = dot(x, w);
  const Expr chosen = switch_(
      taken, [&] { return y + w; }, [&] { return y; });
  EXPECT_EQ(chosen.shape(), (Shape{kUnknown, 2, 1}));
  Function f({x, w, taken}, {chosen, gradients(sum(chosen), {x})[0]});
  for (const bool first : {true, false}) {
    const auto results = f({doubles({1, 2}, {1, 2}), doubles({2, 2, 1}, {1, 2, 3, 4}), Array::from<bool>({}, {first})});
    EXPECT_EQ(results[0].shape(), (Shape{first ? 2 : 1, 2, 1}));
    EXPECT_EQ(results[1].data<double>()[0], first ? 8 : 4);
    EXPECT_EQ(results[1].data<double>()[1], first ? 12 : 6);
  }
}

// A training step whose loss has two forms. One of them uses a weight that the other does not; both sum over the batch.
std::vector<Array> trained() {
  const Variable a = variable(counted({3, 2}, -0.5)), b = variable(counted({3, 2}, 0.1));
  const Expr x = placeholder({.shape = {kUnknown, 3}, .dtype = DType::kFloat64});
  const Expr loss = switch_(
      positive(x), [&] { return mean(square(dot(x, a))); },
      [&] { return mean(square(dot(x, b) - mean(dot(x, a), {0}, true))); });
  Function train({x},
                 {loss, switch_(
                            positive(x), [&] { return dot(x, a); }, [&] { return dot(x, b); })},
                 adam(loss, std::vector<Variable>{a, b}).updates);
  std::vector<Array> results;
  for (const double first : {-0.6, 0.1, -1.0, 0.2})
    for (const Array& result : train({counted({7, 3}, first)})) results.push_back(result.copy());
  results.push_back(get_value(a));
  results.push_back(get_value(b));
  return results;
}

TEST_F(Switch, RanksTrainWhatOneRankTrains) {
  const auto alone = trained();
  for (const int size : {2, 3}) {
    comm::spawn_ranks(size, [&](comm::Communicator& communicator) {
      Session session(3);
      session.distribute(make_data_parallel(communicator));
      SessionScope scope(session);
      const auto results = trained();
      for (std::size_t k = 0; k < alone.size(); ++k)
        for (std::int64_t i = 0; i < alone[k].size(); ++i)
          ASSERT_NEAR(results[k].data<double>()[i], alone[k].data<double>()[i], 1e-9) << "array " << k;
    });
  }
}

TEST_F(Switch, PhasesTakeFunctions) {
  const Expr x = placeholder({.shape = {2}, .dtype = DType::kFloat64});
  int built = 0;
  const auto doubled = [&] { return ++built, x * 2.0; };
  const Array feed = doubles({2}, {1, 2});
  auto value = [&](const Expr& y) { return Function({x}, {y})({feed})[0].data<double>()[1]; };
  EXPECT_EQ(value(in_train_phase(doubled, x, true)), 4);
  EXPECT_EQ(value(in_train_phase(doubled, x, 1)), 4);
  EXPECT_EQ(built, 2);
  EXPECT_EQ(value(in_train_phase(doubled, x, 0)), 2);
  EXPECT_EQ(value(in_test_phase(doubled, x, true)), 2);
  EXPECT_EQ(built, 2) << "a function that is not taken is not called";
  EXPECT_EQ(value(in_test_phase(x, doubled, 1)), 4);
  set_learning_phase(true);
  EXPECT_EQ(value(in_train_phase(doubled, [&] { return x; })), 4);
  session_.clear();
  const Expr y = in_train_phase(doubled, x), z = in_test_phase(doubled, x);
  Function f({x, learning_phase()}, {y, z});
  for (const bool training : {true, false}) {
    const auto results = f({feed, Array::scalar(training)});
    EXPECT_EQ(results[0].data<double>()[1], training ? 4 : 2);
    EXPECT_EQ(results[1].data<double>()[1], training ? 2 : 4);
  }
  const Expr number = placeholder({.shape = {}, .dtype = DType::kInt32});
  Function g({x, number}, {in_train_phase(doubled, x, number)});
  EXPECT_EQ(g({feed, Array::scalar(std::int32_t{1})})[0].data<double>()[0], 2);
  EXPECT_EQ(g({feed, Array::scalar(std::int32_t{0})})[0].data<double>()[0], 1);
}

}  // namespace
}  // namespace syncline
