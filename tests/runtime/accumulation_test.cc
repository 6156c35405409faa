// Gradient accumulation: one update from several batches equals the update from one batch of all their rows, and no
// gradient is transferred before the last batch.
#include "syncline/training/accumulation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/plan/plan.h"
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
#include "tests/runtime/ranks.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

constexpr std::int64_t kRows = 7;  // of a batch; 2 and 3 ranks have unequal shares

using MakeOptimizer = std::function<Optimizer(const Expr& loss, std::span<const Variable> variables)>;

Optimizer make_sgd(const Expr& loss, std::span<const Variable> variables) {
  return sgd(loss, variables, {.learning_rate = 0.1, .momentum = 0.9, .nesterov = true});
}
Optimizer make_adam(const Expr& loss, std::span<const Variable> variables) { return adam(loss, variables); }

// Gathered rows of a table, a product, and a penalty, whose gradient is replicated.
struct Model {
  Expr words = placeholder({.shape = {kUnknown, 4}, .dtype = DType::kInt32});
  Expr targets = placeholder({.shape = {kUnknown, 2}, .dtype = DType::kFloat64});
  Variable table = variable(random_doubles({9, 5}, 1), {.name = "table"});
  Variable w = variable(random_doubles({5, 2}, 2), {.name = "w"}), b = variable(doubles({0.5, -1}), {.name = "b"});
  Expr loss =
      mean(square(tanh(bias_add(dot(mean(gather(table, words), {1}), w), b)) - targets)) + sum(square(w.expr())) * 0.05;
  std::vector<Variable> variables{table, w, b};

  std::vector<Array> values() const { return batch_get_value(variables); }
};

std::vector<Array> batch_of(std::uint64_t number, std::uint64_t batches = 1) {
  std::vector<Array> parts{Array(DType::kInt32, {kRows * static_cast<std::int64_t>(batches), 4}),
                           Array(DType::kFloat64, {kRows * static_cast<std::int64_t>(batches), 2})};
  for (std::uint64_t i = 0; i < batches; ++i) {
    const auto begin = static_cast<std::int64_t>(i) * kRows;
    const Array words = random_ints({kRows, 4}, 9, number + i), targets = random_doubles({kRows, 2}, number + i);
    std::copy_n(words.data<std::int32_t>(), words.size(), parts[0].data<std::int32_t>() + begin * 4);
    std::copy_n(targets.data<double>(), targets.size(), parts[1].data<double>() + begin * 2);
  }
  return parts;
}

void expect_a_larger_batch(const MakeOptimizer& make, std::uint64_t steps, double tolerance) {
  std::vector<Array> wanted;
  on_one_process([&] {
    const Model m;
    Function train({m.words, m.targets}, {}, make(m.loss, m.variables).updates);
    for (std::uint64_t update = 0; update < 4; ++update) train(batch_of(update * steps, steps));
    wanted = m.values();
  });
  const auto accumulate_batches = [&] {
    const Model m;
    const Optimizer optimizer = make(m.loss, m.variables);
    Function train({m.words, m.targets}, {}, accumulate(optimizer, static_cast<std::int64_t>(steps)).updates);
    for (std::uint64_t batch = 0; batch < 4 * steps; ++batch) {
      const std::vector<Array> before = m.values();
      train(batch_of(batch));
      EXPECT_EQ(same_bits(m.values()[1], before[1]), (batch + 1) % steps != 0) << batch;
    }
    EXPECT_EQ(get_value(optimizer.weights[0]).item(), 4);  // updates, not batches
    return m.values();
  };
  expect_same_on_ranks(accumulate_batches, tolerance, {1, 2, 3});
  on_one_process([&] {
    const std::vector<Array> got = accumulate_batches();
    for (std::size_t i = 0; i < got.size(); ++i) expect_near(got[i], wanted[i], tolerance);
  });
}

TEST(Accumulation, IsALargerBatch) {
  expect_a_larger_batch(make_sgd, 3, 1e-12);
  expect_a_larger_batch(make_adam, 4, 1e-10);
  expect_a_larger_batch(make_sgd, 1, 1e-12);
}

// The number of collectives that `call` starts: tickets count up by one.
template <class F>
std::uint64_t collectives_of(comm::Communicator& communicator, F&& call) {
  const auto take_ticket = [&] {
    std::int32_t nothing = 0;
    const comm::Ticket ticket = communicator.all_reduce({}, &nothing, 1, DType::kInt32, comm::Reduce::kMax);
    communicator.wait(ticket);
    return ticket;
  };
  const comm::Ticket before = take_ticket();
  call();
  return take_ticket() - before - 1;
}

TEST(Accumulation, NothingMovesBeforeTheUpdate) {
  on_ranks(2, [](comm::Communicator& communicator) {
    const Model m;
    Function train({m.words, m.targets}, {}, accumulate(adam(m.loss, m.variables), 3).updates);
    for (std::uint64_t batch = 0; batch < 3; ++batch) train(batch_of(batch));  // also compares the variables
    // Each call has one barrier, because one rank alone may reject a word of its rows (runtime/passes/commit.cc).
    for (std::uint64_t batch = 3; batch < 9; ++batch)
      EXPECT_EQ(collectives_of(communicator, [&] { train(batch_of(batch)); }), batch % 3 == 2 ? 2 : 1) << batch;
  });
}

// Five dense layers. `normalized`: each with a batch normalization, whose sums a step needs at once.
std::string accumulating_plan(DataParallelOptions options, bool normalized = false) {
  std::string plan;
  on_ranks(
      2,
      [&](comm::Communicator& communicator) {
        Expr x = placeholder({.shape = {kUnknown, 16}});
        const std::vector<Expr> feeds{x};
        const Expr scale = constant(random_doubles({16}, 5).cast(DType::kFloat32));
        std::vector<Variable> variables;
        for (std::uint64_t i = 0; i < 5; ++i) {
          variables.push_back(variable(random_doubles({16, 16}, i).cast(DType::kFloat32)));
          x = dot(x, variables.back());
          if (normalized) x = normalize_batch_in_training(x, scale, scale, {0}).normalized;
          x = relu(x);
        }
        const Expr loss = mean(square(x));
        Function f(feeds, {loss}, accumulate(adam(loss, variables), 4).updates);
        const std::string own = f.describe(std::vector<Array>{Array(DType::kFloat32, {8, 16})});
        if (communicator.rank() == 0) plan = own;
      },
      options);
  return plan;
}

TEST(Accumulation, TotalsAreInBucketsOfTheirOwn) {
  const std::string plan = accumulating_plan({});
  EXPECT_EQ(count_lines(plan, "all_reduce"), 2) << plan;
  EXPECT_NE(plan.find("bucket of 1 sums"), std::string::npos) << plan;  // the loss, in each step
  EXPECT_NE(plan.find("bucket of 5 sums"), std::string::npos) << plan;
  EXPECT_EQ(count_lines(plan, "copy into the bucket"), 0) << plan;
  EXPECT_EQ(count_lines(plan, "assign variable") + count_lines(plan, "assign adam/variable"), 0) << plan;
}

TEST(Accumulation, TotalsStartBeforeTheBackwardPassHasEnded) {
  const std::string plan = accumulating_plan({.first_bucket = 1, .later_buckets = 1});
  EXPECT_EQ(count_lines(plan, "all_reduce"), 6) << plan;
  EXPECT_LT(first_line(plan, "all_reduce"), last_line(plan, "dot_kernel_grad")) << plan;
  EXPECT_LT(last_line(plan, "all_reduce"), first_line(plan, "sqrt")) << plan;
}

TEST(Accumulation, TotalsStartBeforeLaterSumsThatAreNeededAtOnce) {
  const std::string plan = accumulating_plan({.first_bucket = 1, .later_buckets = 1}, true);
  EXPECT_EQ(count_lines(plan, "needed at once"), 5 + 5) << plan;
  const int first_total = first_line(plan, "unless, ");
  ASSERT_GE(first_total, 0) << plan;
  EXPECT_LT(first_total, last_line(plan, "needed at once")) << plan;
}

// No call copies values, whether it updates or not.
TEST(Accumulation, NewValuesAreComputedInPlace) {
  on_one_process([] {
    const Model m;
    Function f({m.words, m.targets}, {}, accumulate(make_adam(m.loss, m.variables), 2).updates);
    f(batch_of(1));
    int choices = 0;
    for (const Step& step : f.last_plan()->steps()) {
      if (step.label != "choose()" || step.args.out_meta[0].shape.ndim() == 0) continue;
      ++choices;
      EXPECT_EQ(step.args.in[0], step.args.out[0]);
      EXPECT_EQ(step.args.in[1], step.args.out[0]);
    }
    EXPECT_EQ(choices, 9);  // three variables with two moments each
  });
}

// Updates under a condition swap two variables; the outputs and the updates read the old values.
TEST(Accumulation, OldValuesLastAsLongAsTheyAreRead) {
  on_one_process([] {
    const Expr keep = placeholder({.shape = {}, .dtype = DType::kInt32});
    const Variable a = variable(doubles({1, 2})), b = variable(doubles({30, 40}));
    const Variable c = variable(doubles(Shape{2, 2}, {1, 2, 3, 4}));
    const auto unless = [&](const Variable& x, const Expr& value) { return update(x, switch_(keep, x.expr(), value)); };
    Function f({keep}, {a.expr() * 1.0},
               {unless(a, b.expr() + a), unless(b, a.expr() * 10.0 + sum(b.expr())), unless(c, dot(c, c) + a)});
    expect_values(f({Array::scalar<std::int32_t>(1)})[0], {1, 2});
    expect_values(get_value(c), {1, 2, 3, 4});
    expect_values(f({Array::scalar<std::int32_t>(0)})[0], {1, 2});
    expect_values(get_value(a), {31, 42});
    expect_values(get_value(b), {80, 90});
    expect_values(get_value(c), {8, 12, 16, 24});
  });
}

// The state is saved between two updates on 3 ranks and resumed on 2.
TEST(Accumulation, ResumesFromItsState) {
  std::vector<Array> saved, wanted, resumed;
  const auto train = [&](comm::Communicator& communicator, bool resume) {
    const Model m;
    const AccumulatingOptimizer optimizer = accumulate(make_sgd(m.loss, m.variables), 3);
    Function step({m.words, m.targets}, {}, optimizer.updates);
    std::vector<Variable> all = m.variables;
    all.insert(all.end(), optimizer.weights.begin(), optimizer.weights.end());
    all.insert(all.end(), optimizer.accumulated.begin(), optimizer.accumulated.end());
    for (std::uint64_t batch = 0; batch < 6; ++batch) {
      if (batch == 4 && resume)
        for (std::size_t i = 0; i < all.size(); ++i) set_value(all[i], saved[i]);
      if (batch >= 4 || !resume) step(batch_of(batch));
      if (batch != 3 || resume) continue;
      const std::vector<Array> now = batch_get_value(all);  // collective
      if (communicator.rank() == 0) saved = now;
    }
    const std::vector<Array> now = m.values();
    if (communicator.rank() == 0) (resume ? resumed : wanted) = now;
  };
  on_ranks(3, [&](comm::Communicator& communicator) { train(communicator, false); });
  on_ranks(2, [&](comm::Communicator& communicator) { train(communicator, true); });
  ASSERT_EQ(resumed.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) expect_near(resumed[i], wanted[i], 1e-12);
}

TEST(Accumulation, AnOldSumIsForgottenWhateverItHolds) {
  on_one_process([] {
    const Expr x = placeholder({.shape = {kUnknown}, .dtype = DType::kFloat64});
    const Variable w = variable(doubles({1}));
    const std::vector<Variable> variables{w};
    const Accumulation a = accumulate_gradients(gradients(sum(x) * sum(w.expr()), variables), variables, 2);
    std::vector<Update> updates = a.updates;
    Function f({x}, {a.totals[0]}, updates);
    f({doubles({1})});
    f({doubles({HUGE_VAL})});
    f({doubles({2})});
    expect_values(f({doubles({4})})[0], {3});
  });
}

// A float16 sum would lose many small terms.
TEST(Accumulation, Float16IsAddedUpInFloat32) {
  const auto train = [] {
    const Expr x = placeholder({.shape = {kUnknown, 3}, .dtype = DType::kFloat16});
    const Variable w = variable(doubles(Shape{3, 1}, {1, 2, 3}).cast(DType::kFloat16));
    const std::vector<Variable> variables{w};
    const AccumulatingOptimizer optimizer = accumulate(sgd(sum(dot(x, w)), variables, {.learning_rate = 0.25}), 1000);
    EXPECT_EQ(optimizer.accumulated[1].dtype(), DType::kFloat32);
    Function f({x}, {}, optimizer.updates);
    const Array first = doubles(Shape{2, 3}, {4096, 0, 1, 0, 0, 1}).cast(DType::kFloat16),
                other = doubles(Shape{2, 3}, {1, 4, 2, 0, 0, 2}).cast(DType::kFloat16);
    for (int i = 0; i < 1000; ++i) f({i == 0 ? first : other});
    return std::vector<Array>{get_value(w)};
  };
  on_one_process([&] {
    expect_values(train()[0], {1 - (4096 + 999) / 4000.0, 2 - 3996 / 4000.0, 3 - (2 + 3996) / 4000.0}, 1e-3);
  });
  expect_same_on_ranks(train, 1e-3, {2});
}

TEST(Accumulation, RefusesNoSteps) {
  on_one_process([] {
    const Model m;
    EXPECT_EQ(message_of<ValueError>([&] { accumulate(sgd(m.loss, m.variables), 0); }),
              "accumulate_gradients: the number of steps is 0; give 1 or more");
    EXPECT_EQ(message_of<ValueError>([&] { accumulate_gradients({}, m.variables, 2); }),
              "accumulate_gradients: 0 gradients are given for 3 variables");
  });
}

TEST(PartialVariables, AreTheSumOfWhatTheRanksHold) {
  expect_same_on_ranks([] {
    const Expr x = placeholder({.shape = {kUnknown, 3}, .dtype = DType::kFloat64});
    const Variable rows = variable(doubles({1, 2, 3}), {.name = "rows", .partial = true});
    const Variable whole = variable(doubles({1, 1, 1}), {.name = "whole", .partial = true});
    Function f({x}, {rows, rows.expr() * rows.expr()},
               {update_add(rows, sum(x, {0}) - whole.expr() * 2.0), update(whole, exp(rows.expr() * 0.01))});
    std::vector<Array> results;
    for (const std::int64_t n : {6, 5, 1, 2})
      for (Array& a : f({random_doubles({n, 3}, static_cast<std::uint64_t>(n))})) results.push_back(a);
    set_value(rows, doubles({3, 2, 1}));
    for (const Variable& v : {rows, whole}) results.push_back(get_value(v));
    f({random_doubles({4, 3}, 9)});
    for (const Variable& v : {rows, whole}) results.push_back(get_value(v));
    return results;
  });
}

}  // namespace
}  // namespace syncline::testing
