// Training on N ranks equals training in one process up to rounding, and all ranks have the same bits.
#include <gtest/gtest.h>

#include "syncline/backend/config.h"
#include "syncline/backend/control.h"
#include "syncline/backend/convolution.h"
#include "syncline/backend/core.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/session.h"
#include "syncline/training/optimizers.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

using MakeOptimizer = std::function<Optimizer(const Expr& loss, std::span<const Variable> variables)>;

// Ten steps with dropout, on batches of uneven sizes, some smaller than the number of ranks.
std::vector<Array> train_perceptron(const MakeOptimizer& make) {
  set_floatx(DType::kFloat64);
  const Expr x = placeholder({.shape = {kUnknown, 6}, .dtype = DType::kFloat64});
  const Expr y = placeholder({.shape = {kUnknown, 3}, .dtype = DType::kFloat64});
  const Variable w1 = random_normal_variable({6, 16}, 0, 0.3, {.name = "w1"}), b1 = zeros({16}, {.name = "b1"});
  const Variable w2 = random_normal_variable({16, 3}, 0, 0.3, {.name = "w2"}), b2 = zeros({3}, {.name = "b2"});
  const Expr hidden = relu(bias_add(dot(x, w1), b1));
  const Expr dropped = in_train_phase(dropout(hidden, 0.4), hidden);
  const Expr p = softmax(bias_add(dot(dropped, w2), b2));
  const Expr loss = mean(categorical_crossentropy(softmax(y), p));
  const std::vector<Variable> variables{w1, b1, w2, b2};
  const Optimizer optimizer = make(loss, variables);
  Function train({x, y, learning_phase()}, {loss}, optimizer.updates, "train");
  Function test({x, y, learning_phase()}, {loss, p}, {}, "test");
  std::vector<Array> results;
  std::uint64_t step = 0;
  for (const std::int64_t rows : {12, 12, 7, 12, 1, 5, 12, 3, 2, 11}) {
    const Array a = random_doubles({rows, 6}, ++step), b = random_doubles({rows, 3}, 100 + step);
    results.push_back(train({a, b, Array::scalar(true)})[0]);
    for (Array& out : test({a, b, Array::scalar(false)})) results.push_back(out);
  }
  for (const Variable& v : variables) results.push_back(get_value(v));
  for (const Variable& v : optimizer.weights) results.push_back(get_value(v));
  return results;
}

TEST(Training, Sgd) {
  expect_same_on_ranks([] {
    return train_perceptron([](const Expr& loss, std::span<const Variable> v) {
      return sgd(loss, v, {.learning_rate = 0.1, .momentum = 0.9, .nesterov = true});
    });
  });
}

// Adam divides by the square root of tiny second moments, so the rounding of a gradient grows in the first steps.
TEST(Training, Adam) {
  expect_same_on_ranks(
      [] { return train_perceptron([](const Expr& loss, std::span<const Variable> v) { return adam(loss, v); }); },
      1e-10);
}

TEST(Training, Rmsprop) {
  expect_same_on_ranks(
      [] { return train_perceptron([](const Expr& loss, std::span<const Variable> v) { return rmsprop(loss, v); }); },
      1e-10);
}

TEST(Training, AnEmbedding) {
  expect_same_on_ranks([] {
    const Expr words = placeholder({.shape = {kUnknown, 4}, .dtype = DType::kInt32});
    const Variable table = variable(random_doubles({30, 5}, 1), {.name = "embedding"});
    const Variable w = variable(random_doubles({5, 2}, 2), {.name = "w"});
    const Expr loss = mean(square(dot(mean(gather(table, words), {1}), w)));
    const std::vector<Variable> variables{table, w};
    Function train({words}, {loss}, sgd(loss, variables, {.learning_rate = 0.5}).updates);
    std::vector<Array> results;
    for (const std::int64_t rows : {8, 3, 1, 5})
      results.push_back(train({random_ints({rows, 4}, 30, static_cast<std::uint64_t>(rows))})[0]);
    results.push_back(get_value(table));
    results.push_back(get_value(w));
    return results;
  });
}

TEST(Training, AConvolutionWithBatchNormalization) {
  expect_same_on_ranks(
      [] {
        const Expr x = placeholder({.shape = {kUnknown, 6, 6, 2}, .dtype = DType::kFloat64});
        const Variable kernel = variable(random_doubles({3, 3, 2, 4}, 1), {.name = "kernel"});
        const Variable gamma = variable(random_doubles({4}, 2)), beta = variable(random_doubles({4}, 3));
        const Variable moving = variable(doubles({0, 0, 0, 0}));
        const NormalizedBatch n = normalize_batch_in_training(conv2d(x, kernel), gamma, beta, {0, 1, 2});
        const Expr loss = mean(square(pool2d(relu(n.normalized), {2, 2})));
        const std::vector<Variable> variables{kernel, gamma, beta};
        std::vector<Update> updates = sgd(loss, variables, {.learning_rate = 0.1}).updates;
        updates.push_back(moving_average_update(moving, n.mean, 0.9));
        Function train({x}, {loss}, updates);
        std::vector<Array> results;
        for (const std::int64_t rows : {6, 4, 1, 5})
          results.push_back(train({random_doubles({rows, 6, 6, 2}, static_cast<std::uint64_t>(rows))})[0]);
        for (const Variable& v : {kernel, gamma, beta, moving}) results.push_back(get_value(v));
        return results;
      },
      1e-11);
}

// Integer counters are exact on every rank, also for unequal shares of a batch.
TEST(Training, CountersAreExact) {
  expect_same_on_ranks(
      [] {
        const Expr p = placeholder({.shape = {kUnknown}, .dtype = DType::kFloat64});
        const Variable hits = variable(Array::scalar<std::int32_t>(0)), seen = variable(Array::scalar<std::int32_t>(0));
        const Expr hit = cast(greater(p, p * 0.0), DType::kInt32);
        Function f({p}, {hits},
                   {update_add(hits, sum(hit)), update_add(seen, sum(cast(equal(hit, hit), DType::kInt32)))});
        for (const std::int64_t rows : {9, 2, 1, 6}) f({random_doubles({rows}, static_cast<std::uint64_t>(rows))});
        return std::vector<Array>{get_value(hits), get_value(seen)};
      },
      0);
}

// The batch mean in the last iteration: the ranks communicate in every iteration and nowhere else.
Expr mean_of_last_iteration(const Expr& x) {
  const RnnStep cell = [](const Expr& in, const std::vector<Expr>& states) {
    const Expr h = tanh(in + states[0]);
    return std::pair<Expr, std::vector<Expr>>{h, {mean(h, {0})}};
  };
  return rnn(cell, x, {fill({3}, 0, DType::kFloat64)}).new_states[0];
}

TEST(Training, UpdatesComeBehindTheLoopsInWhichRanksMeet) {
  expect_same_on_ranks([] {
    const Expr x = placeholder({.shape = {kUnknown, 4, 3}, .dtype = DType::kFloat64});
    const Variable large = variable(random_doubles({200, 60}, 1)), small = variable(random_doubles({3}, 2));
    const std::vector<Update> updates{update(large, large.expr() * 0.9), update(small, small.expr() * 0.9)};
    // The ranks communicate in a loop, and in a nested loop.
    const Expr last = mean_of_last_iteration(x);
    const Expr nested = foldl([&](const Expr& sum, const Expr& e) { return sum + e * mean_of_last_iteration(x); },
                              fill({2}, 1, DType::kFloat64), fill({3}, 0, DType::kFloat64));
    Function one({x}, {last}, updates), two({x}, {nested}, updates);
    std::vector<Array> results;
    for (std::uint64_t step = 0; step < 2; ++step)
      for (Function* f : {&one, &two}) results.push_back((*f)({random_doubles({7, 4, 3}, step)})[0]);
    results.push_back(get_value(large));
    results.push_back(get_value(small));
    return results;
  });
}

}  // namespace
}  // namespace syncline::testing
