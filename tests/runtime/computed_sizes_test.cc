// Sizes computed from values: one plan computes the sizes, and their values select the plan of the step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "syncline/backend/control.h"
#include "syncline/backend/core.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/math.h"
#include "syncline/backend/random.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/session.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

Expr input(Shape shape, DType dtype = DType::kFloat64, std::string name = "x") {
  return placeholder({.shape = std::move(shape), .dtype = dtype, .name = std::move(name)});
}

Array integers(std::vector<std::int32_t> values) {
  return Array::from<std::int32_t>(Shape{static_cast<std::int64_t>(values.size())}, values);
}

TEST(ComputedSizes, BoundsOfASlice) {
  expect_same_on_ranks([] {
    const Expr x = input({kUnknown, 2}), n = input({2}, DType::kInt32, "n");
    const Expr part = index(x, {Range{index(n, {0}), index(n, {1})}});
    Function f({x, n}, {part, sum(part), gradients(sum(square(part)), {x})[0]});
    std::vector<Array> results;
    for (const auto& bounds : {std::vector<std::int32_t>{1, 4}, {0, 7}, {-2, 7}, {3, 3}, {1, 4}})
      for (const Array& a : f({random_doubles({7, 2}, 1), integers(bounds)})) results.push_back(a);
    EXPECT_EQ(results[0].shape(), (Shape{3, 2}));
    EXPECT_EQ(results[9].shape(), (Shape{0, 2}));
    EXPECT_TRUE(same_bits(results[0], results[12]));
    expect_near(results[0], random_doubles({7, 2}, 1).rows(1, 4), 0);
    return results;
  });
}

TEST(ComputedSizes, AVariablesLargestElement) {
  expect_same_on_ranks([] {
    const Variable v = variable(integers({2, 5, 3}));
    const Expr counted = arange(Dim(max(v.expr())));
    // The step reads the variable's old value.
    Function f({}, {sum(counted)}, {update(v, v.expr() + cast(sum(counted), DType::kInt32))});
    std::vector<Array> results;
    for (int step = 0; step < 3; ++step) results.push_back(f(std::vector<Array>{})[0]);
    EXPECT_EQ(results[0].item(), 10);   // 0 + ... + 4
    EXPECT_EQ(results[1].item(), 105);  // 0 + ... + 14
    results.push_back(get_value(v));
    return results;
  });
}

TEST(ComputedSizes, SizesThatFollowFromOtherSizes) {
  expect_same_on_ranks([] {
    const Expr n = input({}, DType::kInt32, "n");
    const Expr ones = fill({n, 2}, 1, DType::kInt32);                 // a fed size
    const Expr more = arange(Dim(sum(ones)));                         // a size computed from `ones`
    Function f({n}, {fill(Dims{max(more), 3}, 7, DType::kFloat64)});  // a size computed from `more`
    std::vector<Array> results;
    for (const std::int32_t fed : {2, 4, 1, 2}) {
      results.push_back(f({Array::scalar(fed)})[0]);
      EXPECT_EQ(results.back().shape(), (Shape{2 * fed - 1, 3}));
    }
    return results;
  });
}

TEST(ComputedSizes, Masks) {
  expect_same_on_ranks([] {
    const Expr x = input({kUnknown, 3}), y = input({kUnknown, 3}, DType::kFloat64, "y");
    const Expr rows = greater(sum(y, {1}), scalar_like(0, y)), elements = greater(y, scalar_like(0, y));
    const Expr loss = sum(square(index(x, {rows}))) + sum(exp(index(x, {elements})));
    Function f({x, y}, {index(x, {rows}), index(x, {elements}), index(x, {rows, 1}), index(x, {Ellipsis{}, elements}),
                        loss, gradients(loss, {x})[0]});
    std::vector<Array> results;
    for (const std::uint64_t seed : {1, 2, 3})
      for (const Array& a : f({random_doubles({8, 3}, seed), random_doubles({8, 3}, 10 + seed)})) results.push_back(a);
    return results;
  });
}

TEST(ComputedSizes, MasksByHand) {
  on_one_process([] {
    const Expr x = input({kUnknown, 2}), m = input({kUnknown}, DType::kBool, "m");
    Function f({x, m}, {index(x, {m}), gradients(sum(index(x, {m}) * 3.0), {x})[0]});
    const Array rows = doubles({3, 2}, {1, 2, 3, 4, 5, 6});
    auto out = f({rows, Array::from<bool>(Shape{3}, {true, false, true})});
    expect_near(out[0], doubles({2, 2}, {1, 2, 5, 6}), 0);
    expect_near(out[1], doubles({3, 2}, {3, 3, 0, 0, 3, 3}), 0);
    EXPECT_EQ(f({rows, Array::from<bool>(Shape{3}, {false, false, false})})[0].shape(), (Shape{0, 2}));
    EXPECT_NE(message_of<ShapeError>([&] {
                f({rows, Array::from<bool>(Shape{2}, {true, true})});
              }).find("index: a mask of shape (2,) does not fit x (3, 2)"),
              std::string::npos);
    EXPECT_NE(message_of<ShapeError>([&] {
                index(x, {input({3, 4}, DType::kBool)});
              }).find("does not fit x (?, 2)"),
              std::string::npos);
    EXPECT_NE(message_of<ShapeError>([&] { index(x, {input({}, DType::kBool)}); }).find("a mask is a scalar"),
              std::string::npos);
  });
}

TEST(ComputedSizes, WithinLoopsAndBranches) {
  expect_same_on_ranks([] {
    const Expr x = input({kUnknown, 3}), n = input({2}, DType::kInt32, "n"), c = input({}, DType::kInt32, "c");
    const Expr size = index(n, {0});
    // The body captures the size, which is the same in each iteration.
    const Expr folded = foldl(
        [&](const Expr& a, const Expr& row) {
          return a + sum(index(row, {Range{0, size}}));
        },
        x, fill({}, 0, DType::kFloat64));
    const Expr chosen = switch_(
        c,
        [&] {
          return sum(index(x, {Range{0, size}}));
        },
        [&] { return sum(cast(arange(Dim(index(n, {1}))), DType::kFloat64)); });
    const Expr loss = folded * folded + chosen;
    Function f({x, n, c}, {folded, chosen, gradients(loss, {x})[0]});
    std::vector<Array> results;
    for (const auto& fed : {std::vector<std::int32_t>{1, 4}, {3, 2}, {0, 9}})
      for (const std::int32_t side : {0, 1})
        for (const Array& a : f({random_doubles({4, 3}, 3), integers(fed), Array::scalar(side)})) results.push_back(a);
    return results;
  });
}

// Each iteration has its own size, so the loop is unrolled.
TEST(ComputedSizes, ThatDifferBetweenIterations) {
  expect_same_on_ranks([] {
    const Expr x = input({kUnknown, 4}), ends = input({kUnknown, 3}, DType::kInt32, "ends");
    const auto piece = [&](const Expr& row, const Expr& e, const Expr& i) {
      return index(row, {Range{index(e, {i - 1.0}), index(e, {i})}});
    };
    // Nested loops, as in keras-piecewise.
    const Expr pooled = map_fn(
        [&](const Expr& sample) {
          const Expr row = index(x, {sample}), e = index(ends, {sample});
          return map_fn([&](const Expr& i) { return sum(square(piece(row, e, i))); }, arange(1, 3), DType::kFloat64);
        },
        arange(Dim(0), dim(x, 0)), DType::kFloat64);
    // States of iterations in both directions, and residuals that the gradient reads.
    const auto add_part = [&](const Expr& a, const Expr& e) {
      return a * 0.5 + sum(exp(index(x, {Range{0, index(e, {1})}, 0})));
    };
    const Expr from_left = foldl(add_part, ends, fill({}, 1, DType::kFloat64));
    const Expr from_right = foldr(add_part, ends, fill({}, 1, DType::kFloat64));
    const Expr loss = sum(pooled) + from_left * from_right;
    Function f({x, ends}, {pooled, from_left, from_right, gradients(loss, {x})[0]});
    std::vector<Array> results;
    for (const auto& fed : {std::vector<std::int32_t>{0, 2, 4, 1, 3, 4}, {0, 0, 4, 2, 2, 3}, {0, 2, 4, 1, 3, 4}})
      for (const Array& a : f({random_doubles({2, 4}, 3), Array::from<std::int32_t>(Shape{2, 3}, fed)}))
        results.push_back(a);
    const std::vector<double> v = numbers(random_doubles({2, 4}, 3));
    expect_values(results[0],
                  {v[0] * v[0] + v[1] * v[1], v[2] * v[2] + v[3] * v[3], v[5] * v[5] + v[6] * v[6], v[7] * v[7]});
    EXPECT_NEAR(results[1].item(), (0.5 + std::exp(v[0]) + std::exp(v[4])) / 2 + std::exp(v[0]) + std::exp(v[4]),
                1e-12);
    return results;
  });
}

TEST(ComputedSizes, OfTheElement) {
  on_one_process([] {
    const Expr x = input({kUnknown}, DType::kInt32);
    const Expr counted = foldl([](const Expr& a, const Expr& e) { return a + sum(arange(Dim(e))); }, x);
    EXPECT_EQ(Function({x}, {counted})({integers({1, 2, 3})})[0].item(), 1 + 1 + 3);
    const Expr pieces = map_fn([](const Expr& e) { return arange(Dim(e)); }, x);
    EXPECT_EQ(Function({x}, {pieces})({integers({2, 2})})[0].shape(), (Shape{2, 2}));
    EXPECT_NE(message_of<ShapeError>([&] {
                Function({x}, {pieces})({integers({2, 3})});
              }).find("iterations return values of shapes (2,) and (3,)"),
              std::string::npos);
    Session& session = Session::current();
    const Expr drawn = map_fn(
        [&](const Expr& e) {
          return sum(random_uniform(Dims{e}, session.next_random_key(1),
                                    {.minval = 0, .maxval = 1, .dtype = DType::kFloat64}));
        },
        x, DType::kFloat64);
    EXPECT_NE(message_of<ValueError>([&] {
                Function({x}, {drawn})({integers({2, 3})});
              }).find("cannot draw random numbers"),
              std::string::npos);
  });
}

TEST(ComputedSizes, ALoopWithoutIterations) {
  expect_same_on_ranks([] {
    const Expr x = input({kUnknown, kUnknown}), n = input({kUnknown}, DType::kInt32, "n");
    const Expr sums =
        map_fn([&](const Expr& row) { return sum(square(index(row, {greater(row, scalar_like(0, row))}))); }, x);
    const Expr scaled = map_fn(
        [&](const std::vector<Expr>& e) {
          return std::vector<Expr>{e[0] * sum(index(e[0], {Range{0, e[1]}}))};
        },
        {x, n})[0];
    Function f({x, n}, {sums, scaled, gradients(sum(sums) + sum(scaled), {x})[0]});
    std::vector<Array> results = f({Array(DType::kFloat64, {0, 3}), Array(DType::kInt32, {0})});
    EXPECT_EQ(results[1].shape(), (Shape{0, 3}));
    EXPECT_EQ(results[2].shape(), (Shape{0, 3}));
    for (const Array& a : f({random_doubles({2, 3}, 1), integers({1, 3})})) results.push_back(a);
    return results;
  });
}

// A state of known shape must keep it; a state of unknown shape may grow.
TEST(ComputedSizes, AStateThatGrows) {
  on_one_process([] {
    const Expr x = input({kUnknown, 2});
    const auto grown = [&](const Expr& first) {
      const auto append = [](const Expr& a, const Expr& row) {
        return concatenate({a, index(row, {greater(row, scalar_like(0, row))})}, 0);
      };
      return foldl(append, x, first);
    };
    const Array rows = doubles({3, 2}, {1, 2, 3, 4, 1, -1});
    EXPECT_NE(message_of<ShapeError>([&] {
                Function({x}, {grown(fill({1}, 0.5, DType::kFloat64))})({rows});
              }).find("a state of shape (1,) changes its shape to (3,)"),
              std::string::npos);
    const Expr start = input({kUnknown}, DType::kFloat64, "start"), y = grown(start);
    const auto out = Function({x, start}, {y, gradients(sum(square(y)), {x})[0]})({rows, doubles({0.5})});
    expect_values(out[0], {0.5, 1, 2, 3, 4, 1});
    expect_near(out[1], doubles({3, 2}, {2, 4, 6, 8, 2, 0}), 1e-12);
  });
}

// The sizes on the side that is not taken may be invalid.
TEST(ComputedSizes, ABranchGuardsItsSizes) {
  expect_same_on_ranks([] {
    const Expr x = input({kUnknown}), n = input({}, DType::kInt32, "n");
    const Expr divides = equal(floormod(dim(x, 0).is_number() ? n : dim(x, 0).tensor(), n), scalar_like(0, n));
    const Expr blocks = switch_(
        divides,
        [&] {
          return sum(max(reshape(x, {n, -1}), {1}));
        },
        [&] { return fill({}, -1, DType::kFloat64); });
    const Expr ones = switch_(
        greater(n, scalar_like(0, n)), [&] { return sum(fill({n}, 1, DType::kFloat64)); },
        [&] { return fill({}, -1, DType::kFloat64); });
    Function f({x, n}, {blocks, ones, gradients(blocks, {x})[0]});
    std::vector<Array> results;
    for (const std::int32_t fed : {3, 4, -4, 2})
      for (const Array& a : f({random_doubles({6}, 4), Array::scalar(fed)})) results.push_back(a);
    EXPECT_EQ(results[3].item(), -1);
    EXPECT_EQ(results[7].item(), -1);
    return results;
  });
}

TEST(ComputedSizes, AVariableKeepsItsShape) {
  on_one_process([] {
    const Expr x = input({kUnknown});
    const Variable v = variable(doubles({7, 8, 9}));
    Function masked({x}, {}, {update(v, index(x, {greater(x, scalar_like(0, x))}))}), whole({x}, {}, {update(v, x)});
    for (Function* f : {&masked, &whole})
      EXPECT_NE(message_of<ShapeError>([&] { (*f)({doubles({1})}); }).find("of shape (3,) has the shape (1,)"),
                std::string::npos);
    expect_values(get_value(v), {7, 8, 9});
    masked({doubles({1, -1, 2, 3})});
    expect_values(get_value(v), {1, 2, 3});
  });
}

// The plan of the sizes and the plan of the step draw the same numbers; the next step draws others.
TEST(ComputedSizes, AreDrawnOnce) {
  expect_same_on_ranks([] {
    Session& session = Session::current();
    const Expr drawn =
        random_uniform(Dims{4}, session.next_random_key(7), {.minval = 1, .maxval = 100, .dtype = DType::kInt32});
    const Expr size = max(drawn);
    Function f({}, {fill({size}, 1, DType::kFloat64), drawn}), only({}, {fill({size}, 1, DType::kFloat64)});
    std::vector<Array> results;
    std::vector<std::int64_t> sizes;
    for (int step = 0; step < 6; ++step) {
      const auto out = f(std::vector<Array>{});
      const auto numbers = out[1].values<std::int32_t>();
      EXPECT_EQ(out[0].shape(), (Shape{*std::max_element(numbers.begin(), numbers.end())}));
      sizes.push_back(only(std::vector<Array>{})[0].size());
      results.insert(results.end(), out.begin(), out.end());
    }
    EXPECT_GT(*std::max_element(sizes.begin(), sizes.end()), *std::min_element(sizes.begin(), sizes.end()));
    return results;
  });
}

// Each iteration's size is the result of the iteration before.
TEST(ComputedSizes, ThatFollowFromOneAnother) {
  on_one_process([] {
    const Expr x = input({kUnknown}, DType::kInt32);
    Function f({x}, {foldl([](const Expr& n, const Expr& e) { return sum(fill({n}, 1, DType::kInt32)) + e; }, x)});
    EXPECT_EQ(f({integers(std::vector<std::int32_t>(12, 1))})[0].item(), 12);
    EXPECT_NE(message_of<ValueError>([&] {
                f({integers(std::vector<std::int32_t>(40, 1))});
              }).find("more than 32 sizes depend on one another"),
              std::string::npos);
  });
}

TEST(ComputedSizes, EachValueHasItsPlan) {
  on_one_process([] {
    const Expr x = input({kUnknown}, DType::kInt32);
    Function f({x}, {fill(Dims{sum(x)}, 1)});
    const auto plan = [&](std::vector<std::int32_t> fed) {
      f({integers(std::move(fed))});
      return f.last_plan();
    };
    const Plan* three = plan({1, 2});
    EXPECT_NE(plan({1, 4}), three);
    EXPECT_EQ(plan({2, 1}), three);
    EXPECT_NE(plan({1, 1, 1}), three);  // another shape
    EXPECT_EQ(plan({0, 3}), three);
  });
}

TEST(ComputedSizes, WithoutSimplification) {
  Session session;
  session.set_passes({.simplify = false, .fuse = false});
  SessionScope scope(session);
  const Expr x = input({kUnknown, 3}), y = input({kUnknown, 3}, DType::kFloat64, "y");
  Function f({x, y}, {index(x, {greater(y, scalar_like(0, y))}), arange(Dim(cast(sum(y), DType::kInt32)))});
  const auto out = f({doubles({1, 3}, {1, 2, 3}), doubles({1, 3}, {4, -1, 1})});
  expect_values(out[0], {1, 3});
  expect_values(out[1], {0, 1, 2, 3});
}

}  // namespace
}  // namespace syncline::testing
