// The collectives of a plan: their buckets and their positions.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "comm/single.h"
#include "ops/control/loop_build.h"
#include "runtime/placement/strategy.h"
#include "syncline/backend/convolution.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/session.h"
#include "syncline/training/optimizers.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
using Ready = std::vector<std::pair<DType, std::int64_t>>;

std::vector<int> buckets_of(const Ready& ready, DataParallelOptions options = {}) {
  const auto communicator = comm::make_single_communicator();
  const auto strategy = make_data_parallel(*communicator, options);
  const auto first = strategy->bucket(ready);
  EXPECT_EQ(strategy->bucket(ready), first);  // pure
  return first;
}

TEST(Bucket, TheFirstIsFullAtOneMebibyteTheLaterAtTwentyFive) {
  const DType f = DType::kFloat32;
  EXPECT_EQ(buckets_of({}), std::vector<int>{});
  EXPECT_EQ(buckets_of({{f, 4}, {f, 4}, {f, 4}}), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(buckets_of({{f, kMiB - 1}, {f, 1}, {f, 1}}), (std::vector<int>{0, 0, 1}));
  EXPECT_EQ(buckets_of({{f, kMiB}, {f, 24 * kMiB}, {f, kMiB}, {f, 1}}), (std::vector<int>{0, 1, 1, 2}));
  EXPECT_EQ(buckets_of({{f, 100 * kMiB}, {f, 100 * kMiB}, {f, 1}}), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(buckets_of({{f, 8}, {f, 8}, {f, 8}, {f, 8}}, {.first_bucket = 8, .later_buckets = 16}),
            (std::vector<int>{0, 1, 1, 2}));
}

TEST(Bucket, EachDtypeHasItsOwn) {
  const DType f = DType::kFloat32, d = DType::kFloat64, i = DType::kInt32;
  EXPECT_EQ(buckets_of({{f, 4}, {d, 8}, {f, 4}, {i, 4}, {d, 8}}), (std::vector<int>{0, 1, 0, 2, 1}));
  EXPECT_EQ(buckets_of({{f, 4}, {d, kMiB}, {f, 4}, {d, 8}}), (std::vector<int>{0, 1, 0, 2}));
}

struct Layers {
  std::vector<Expr> feeds;
  Expr loss;
  std::vector<Variable> variables;
};

Layers make_layers(int n, std::int64_t width) {
  Layers l;
  l.feeds = {placeholder({.shape = {kUnknown, width}})};
  Expr x = l.feeds[0];
  for (int i = 0; i < n; ++i) {
    l.variables.push_back(
        variable(random_doubles({width, width}, static_cast<std::uint64_t>(i)).cast(DType::kFloat32)));
    l.variables.push_back(variable(Array(DType::kFloat32, {width})));
    x = relu(bias_add(dot(x, l.variables[l.variables.size() - 2]), l.variables.back()));
  }
  l.loss = mean(square(x));
  return l;
}

std::string training_plan(int n, std::int64_t width, DataParallelOptions options = {}, std::int64_t rows = 8) {
  std::string plan;
  on_ranks(
      2,
      [&](comm::Communicator& communicator) {
        const Layers l = make_layers(n, width);
        Function f(l.feeds, {l.loss}, adam(l.loss, l.variables).updates);
        const std::string own = f.describe(std::vector<Array>{Array(DType::kFloat32, {rows, width})});
        if (communicator.rank() == 0) plan = own;
      },
      options);
  return plan;
}

TEST(Buckets, ManySmallGradientsAreOneTransfer) {
  const std::string plan = training_plan(4, 8);
  EXPECT_EQ(count_lines(plan, "all_reduce"), 1) << plan;
  EXPECT_EQ(count_lines(plan, "wait"), 1) << plan;
  EXPECT_EQ(count_lines(plan, "copy into the bucket"), 0) << plan;
  EXPECT_NE(plan.find("bucket of 9 sums"), std::string::npos) << plan;  // the loss and eight gradients, each once
  EXPECT_EQ(count_lines(plan, "all_gather"), 0) << plan;
}

TEST(Buckets, StartBeforeTheBackwardPassHasEnded) {
  const std::string plan = training_plan(6, 16, {.first_bucket = 1, .later_buckets = 1});
  EXPECT_GE(count_lines(plan, "all_reduce"), 6) << plan;
  // The backward pass ends with the gradient of the first layer's weight. The first transfer starts before that, and
  // the first wait comes after the start of the last transfer.
  EXPECT_LT(first_line(plan, "all_reduce"), last_line(plan, "dot_kernel_grad")) << plan;
  EXPECT_LT(last_line(plan, "all_reduce"), first_line(plan, "wait")) << plan;
}

// The gradient of a layer's input hides the transfer of its kernel's gradient.
TEST(Buckets, AKernelsGradientRunsBeforeThatOfTheInput) {
  const std::string plan = training_plan(2, 16, {.first_bucket = 1, .later_buckets = 1});
  const std::size_t of_input = plan.find("dot(transpose_y=true)");
  ASSERT_NE(of_input, std::string::npos) << plan;
  EXPECT_EQ(count_lines(plan.substr(0, of_input), "dot_kernel_grad"), 1) << plan;
  EXPECT_EQ(count_lines(plan.substr(0, of_input), "all_reduce"), 3) << plan;  // the loss, the bias, the kernel
}

// A step that fails in a transfer must leave the variables unchanged.
TEST(Buckets, VariablesAreWrittenBehindTheLastTransfer) {
  const std::string plan = training_plan(6, 16, {.first_bucket = 1, .later_buckets = 1});
  EXPECT_GT(first_line(plan, "square mul add sqrt"), last_line(plan, "wait")) << plan;
}

// The backward pass finishes the last layer's gradients first, so they fill the first bucket and are used first.
TEST(Buckets, AreFilledInTheOrderOfTheBackwardPass) {
  std::string plan;
  on_ranks(2,
           [&](comm::Communicator& communicator) {
             Expr x = placeholder({.shape = {kUnknown, 2}});
             const std::vector<Expr> feeds{x};
             std::vector<Variable> variables;
             for (std::int64_t width = 2; width < 6; ++width) {
               variables.push_back(variable(random_doubles({width, width + 1}, 1).cast(DType::kFloat32)));
               x = relu(dot(x, variables.back()));
             }
             Function f(feeds, {}, adam(mean(square(x)), variables).updates);
             const std::string own = f.describe(std::vector<Array>{Array(DType::kFloat32, {8, 2})});
             if (communicator.rank() == 0) plan = own;
           },
           {.first_bucket = 1, .later_buckets = 1});
  int at = 0;
  for (const char* shape : {"float32(5, 6)", "float32(4, 5)", "float32(3, 4)", "float32(2, 3)"}) {
    const int line = first_line(plan, std::string(" -> ") + shape + ", " + shape);
    EXPECT_GT(line, at) << shape << " in\n" << plan;
    at = line;
  }
}

// A recurrent weight's gradient is summed over the iterations first, then once over the ranks.
TEST(Buckets, ARecurrentWeightsGradientIsReducedOnce) {
  const std::vector<Array> feeds{random_doubles({5, 4, 3}, 1)};
  auto build = [](const std::vector<Expr>& x) {
    const Variable w = variable(random_doubles({3, 2}, 2)), u = variable(random_doubles({2, 2}, 3));
    const Expr sequence = permute_dimensions(x[0], {1, 0, 2});
    LoopParts parts;
    parts.sequences = {sequence};
    parts.initial_states = {sum(x[0], {1, 2}, false)};
    parts.initial_states[0] = expand_dims(parts.initial_states[0], 1) * constant(doubles(Shape{1, 2}, {1, 2}));
    parts.elements = {element_of(sequence)};
    parts.states = {stand_in(parts.initial_states[0])};
    parts.next_states = {tanh(dot(parts.elements[0], w) + dot(parts.states[0], u))};
    const Expr loss = mean(square(make_loop(std::move(parts))));
    const auto g = gradients(loss, {w, u});
    return std::vector<Expr>{loss, g[0], g[1]};
  };
  expect_same_value(feeds, build);
  const std::string plan = plan_on_ranks(2, feeds, build);
  EXPECT_EQ(count_lines(plan, "all_reduce"), 1) << plan;
  EXPECT_NE(plan.find("bucket of 3 sums"), std::string::npos) << plan;
}

// A loop's sum has its own memory, so it is copied into the bucket.
TEST(Buckets, WhatALoopAddsUpIsCopiedIn) {
  const std::vector<Array> feeds{random_doubles({5, 4, 3}, 1)};
  auto build = [](const std::vector<Expr>& x) {
    LoopParts parts;
    parts.sequences = {permute_dimensions(x[0], {1, 0, 2})};
    parts.initial_states = {sum(x[0], {1})};
    parts.elements = {element_of(parts.sequences[0])};
    parts.states = {stand_in(parts.initial_states[0])};
    parts.next_states = {sin(parts.elements[0] + parts.states[0])};
    parts.residuals = {{sum(parts.next_states[0], {0}), true}};
    const Expr loop = make_loop(std::move(parts));
    return std::vector<Expr>{loop, Expr(loop.handle(), 1), sum(loop)};
  };
  expect_same_value(feeds, build);
  const std::string plan = plan_on_ranks(2, feeds, build);
  EXPECT_EQ(count_lines(plan, "all_reduce"), 1) << plan;
  EXPECT_EQ(count_lines(plan, "copy into the bucket"), 1) << plan;
}

// The plan's lines without shapes: the positions of transfers must not depend on the batch size.
std::vector<std::string> steps_of(const std::string& plan) {
  std::vector<std::string> result;
  for (const std::string& line : lines(plan)) result.push_back(line.substr(0, line.find("  ")));
  return result;
}

TEST(Buckets, DoNotDependOnTheBatch) {
  const DataParallelOptions options{.first_bucket = 300, .later_buckets = 2000};
  EXPECT_EQ(steps_of(training_plan(4, 8, options, 8)), steps_of(training_plan(4, 8, options, 5)));
}

TEST(Buckets, AnEmbeddingsGradientCrossesTheWireAsRows) {
  constexpr std::int64_t kRows = 1000, kWidth = 4;
  std::string plan;
  on_ranks(2, [&](comm::Communicator& communicator) {
    const Expr words = placeholder({.shape = {kUnknown}, .dtype = DType::kInt32});
    const Variable table = variable(Array(DType::kFloat32, {kRows, kWidth}), {.name = "embedding"});
    const Expr loss = sum(square(gather(table, words) + 1.0));
    const std::vector<Variable> variables{table};
    Function f({words}, {loss}, sgd(loss, variables).updates);
    const std::string own = f.describe(std::vector<Array>{random_ints({6}, kRows, 1)});
    if (communicator.rank() == 0) plan = own;
  });
  EXPECT_EQ(count_lines(plan, "all_gather"), 2) << plan;  // rows and indices
  EXPECT_EQ(count_lines(plan, "all_reduce"), 1) << plan;  // the loss
  for (const std::string& line : lines(plan)) {
    if (line.find("(1000, 4)") == std::string::npos) continue;
    EXPECT_EQ(line.find("all_reduce"), std::string::npos) << line;
    EXPECT_TRUE(line.starts_with("gather") || line.starts_with("scatter_sub")) << line;
  }
}

TEST(Buckets, OneRankNeedsNoCopies) {
  std::string alone, one;
  auto describe = [] {
    const Layers l = make_layers(2, 8);
    Function f(l.feeds, {l.loss}, sgd(l.loss, l.variables).updates);
    return f.describe(std::vector<Array>{Array(DType::kFloat32, {8, 8})});
  };
  on_one_process([&] { alone = describe(); });
  on_ranks(1, [&](comm::Communicator&) { one = describe(); });
  EXPECT_EQ(count_lines(alone, "all_reduce"), 0) << alone;
  EXPECT_EQ(count_lines(one, "copy"), count_lines(alone, "copy")) << one;
}

// A loop's body may have to return a value as partial although it needs the value's sum itself.
TEST(Buckets, AValueIsHandedOverAsItIsWanted) {
  on_ranks(2, [](comm::Communicator&) {
    const Expr x = placeholder({.shape = {6, 3}, .dtype = DType::kFloat64});
    const Expr s = sum(x, {0});
    const std::vector<Expr> roots{s * 2.0, sqrt(s)};
    const std::vector<Placement> wanted{Placement::partial(), Placement::replicated()};
    const RowShares shares{.begin = {0, 3, 6}, .rank = Session::current().strategy()->rank()};
    PlacementMap leaves;
    leaves[x] = Placement::split(0);
    const PlacedGraph graph = Session::current().strategy()->place(roots, leaves, shares, wanted);
    EXPECT_TRUE(graph.placement.at(graph.roots[0]).is_partial());
    EXPECT_FALSE(graph.placement.contains(graph.roots[1]));
  });
}

// A partial value with readers beside its all-reduce, and two views of one value.
TEST(Buckets, ValuesThatCannotLieInTheBucketAreCopiedIn) {
  const std::vector<Array> feeds{random_doubles({6, 3}, 1)};
  expect_same_value(feeds, [](const std::vector<Expr>& x) {
    const Expr s = sum(x[0], {0});
    return std::vector<Expr>{s, reshape(s, {3, 1}), s * 2.0, sum(exp(s)), s};
  });
}

TEST(Buckets, OfSeveralDtypesAndNoElements) {
  const std::vector<Array> feeds{random_doubles({6, 3}, 1), random_ints({6, 2}, 9, 2), Array(DType::kFloat64, {6, 0})};
  expect_same_value(
      feeds,
      [](const std::vector<Expr>& x) {
        return std::vector<Expr>{sum(x[0], {0}), sum(x[1], {0}), sum(cast(x[0], DType::kFloat32)), sum(x[2], {0}),
                                 sum(x[2])};
      },
      1e-6);
}

// The error frees buffers as it leaves the program's scopes, so transfers on these buffers must end first.
TEST(Buckets, AreFinishedBeforeAnErrorOfThisRankIsThrown) {
  std::atomic<bool> other_came = false;
  on_ranks(2, [&](comm::Communicator& communicator) {
    const Expr x = placeholder({.shape = {2, 3}, .dtype = DType::kFloat64});
    const Expr words = placeholder({.shape = {2}, .dtype = DType::kInt32});
    const Expr total = sum(x, {0}), rows = gather(variable(random_doubles({4, 2}, 1)), words);
    Function f({x, words}, {total, rows});
    const Array batch = random_doubles({2, 3}, 2);
    f({batch, Array::from<std::int32_t>({2}, {0, 1})});
    const Array second_is_wrong = Array::from<std::int32_t>({2}, {0, 9});
    if (communicator.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      other_came = true;
      EXPECT_THROW(f({batch, second_is_wrong}), CommError);  // the other rank has left before the rows are gathered
    } else {
      EXPECT_THROW(f({batch, second_is_wrong}), ValueError);
      EXPECT_TRUE(other_came);
    }
  });
}

TEST(Buckets, AnotherStrategyMakesOtherPlans) {
  on_ranks(2, [](comm::Communicator& communicator) {
    const Expr x = placeholder({.shape = {kUnknown, 3}, .dtype = DType::kFloat64});
    const Variable a = variable(random_doubles({3, 4}, 1)), b = variable(random_doubles({4, 2}, 2));
    const Expr loss = mean(square(dot(tanh(dot(x, a)), b)));
    Function f({x}, gradients(loss, std::vector<Variable>{a, b}));
    const std::vector<Array> feeds{random_doubles({4, 3}, 3)};
    EXPECT_EQ(count_lines(f.describe(feeds), "bucket of"), 1);
    // The allocator often gives the new strategy the address of the old one.
    Session::current().undistribute();
    Session::current().distribute(make_data_parallel(communicator, {.first_bucket = 1, .later_buckets = 1}));
    EXPECT_EQ(count_lines(f.describe(feeds), "bucket of"), 2);
  });
}

}  // namespace
}  // namespace syncline::testing
