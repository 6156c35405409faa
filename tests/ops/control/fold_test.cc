// map_fn, foldl and foldr: errors, unknown lengths, dtypes, gradients, ranks. tests/ops/cases_fold.cc has the values.
#include <gtest/gtest.h>

#include <cmath>

#include "comm/local/local_communicator.h"
#include "syncline/backend/control.h"
#include "syncline/backend/core.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/random.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/session.h"

namespace syncline {
namespace {

using Exprs = std::vector<Expr>;

class Fold : public ::testing::Test {
 protected:
  Session session_{3};
  SessionScope scope_{session_};
};

Array counted(const Shape& shape) {
  Array a(DType::kFloat64, shape);
  for (std::int64_t i = 0; i < a.size(); ++i) a.data<double>()[i] = 1 + static_cast<double>(i % 7);
  return a;
}

template <class E>
void expect_refused(const std::function<void()>& call, const std::string& part) {
  try {
    call();
    ADD_FAILURE() << "not refused; expected a message with: " << part;
  } catch (const E& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

Expr product(const Expr& a, const Expr& e) { return a * e; }

TEST_F(Fold, RefusesWhatDoesNotFit) {
  const Expr scalar = placeholder({.shape = {}}), x = placeholder({.shape = {4, 2}}), y = placeholder({.shape = {3}});
  const Expr none = placeholder({.shape = {0, 2}}), open = placeholder({.shape = {kUnknown, 2}});
  const auto same = [](const Expr& e) { return e; };
  expect_refused<ShapeError>([&] { map_fn(same, scalar); }, "an elem is a scalar");
  expect_refused<ShapeError>([&] { foldl(&product, scalar); }, "foldl: an elem");
  expect_refused<ShapeError>([&] { foldr(&product, none); }, "no initializer is given");
  expect_refused<ShapeError>([&] { foldl(&product, x, placeholder({.shape = {3}})); }, "");
  expect_refused<ShapeError>([&] { foldl(&product, x, y); }, "(3,)");
  const auto widen = [](const Expr& a, const Expr& e) { return concatenate({a, e}); };
  expect_refused<ShapeError>([&] { foldl(widen, x); }, "must keep its dtype and shape");
  const MapFunctionOfMany empty = [](const Exprs&) { return Exprs{}; }, one = [](const Exprs&e) { return Exprs{e[0]}; };
  expect_refused<ValueError>([&] { map_fn(empty, Exprs{x}); }, "returns nothing");
  expect_refused<ValueError>([&] { map_fn(one, Exprs{}); }, "no elems");
  expect_refused<ShapeError>([&] { map_fn(one, Exprs{x, y}); }, "the same number of rows");
  expect_refused<ValueError>(
      [&] {
        map_fn(one, Exprs{x}, {DType::kInt32, DType::kInt32});
      },
      "2 dtypes are given, but fn returns 1");
  const FoldFunctionOfMany loses = [](const Exprs& a, const Exprs&) { return Exprs{a[0]}; };
  expect_refused<ValueError>([&] { foldl(loses, Exprs{x, x}); }, "2 accumulators, but returns 1");
  // An empty batch shows only when it is fed.
  Function f({open}, {foldl(&product, open)});
  EXPECT_THROW(f({Array(DType::kFloat32, {0, 2})}), ShapeError);
}

TEST_F(Fold, LengthComesWithTheFeeds) {
  const Expr x = placeholder({.shape = {kUnknown, 2}, .dtype = DType::kFloat64});
  const Expr one = constant(1.0, DType::kFloat64, {2});
  const Expr left = foldl(&product, x, one), right = foldr([](const Expr&a, const Expr&e) { return e - a; }, x);
  Function with({x}, {left, gradients(sum(left), {x})[0], map_fn([](const Expr& e) { return sum(e); }, x)});
  for (const std::int64_t rows : {0, 1, 4}) {
    const Array feed = counted({rows, 2});
    const auto results = with({feed});
    double wanted = 1;
    for (std::int64_t i = 0; i < rows; ++i) wanted *= feed.data<double>()[2 * i];
    EXPECT_DOUBLE_EQ(results[0].data<double>()[0], wanted);
    EXPECT_EQ(results[1].shape(), (Shape{rows, 2}));
    EXPECT_EQ(results[2].shape(), (Shape{rows}));
    for (std::int64_t i = 0; i < rows; ++i)
      EXPECT_DOUBLE_EQ(results[1].data<double>()[2 * i], wanted / feed.data<double>()[2 * i]);
  }
  Function f({x}, {right});
  EXPECT_EQ(f({counted({3, 2})})[0].data<double>()[0], 1 - (3 - 5));
}

// Each step doubles the number of paths through the body. The gradient must traverse values, not paths.
TEST_F(Fold, GradientsWhereValuesAreUsedTwiceAgainAndAgain) {
  constexpr int kSteps = 60;
  const Expr x = placeholder({.shape = {3, kUnknown, 2}, .dtype = DType::kFloat64});
  const Expr z = placeholder({.shape = {3, 4, 2}, .dtype = DType::kFloat64});
  const auto first_row_twice = [](const Expr& e) {
    const Expr sizes = shape(e);
    Expr same = sizes;
    for (int i = 0; i < kSteps; ++i) same = minimum(same, same);
    return gather(e, same - sizes);
  };
  const auto doubled = [](const Expr& e) {
    Expr y = e;
    for (int i = 0; i < kSteps; ++i) y = y + y;
    return y;
  };
  Function f({x, z}, {gradients(sum(map_fn(first_row_twice, x)), {x})[0], gradients(sum(map_fn(doubled, z)), {z})[0]});
  const auto results = f({counted({3, 4, 2}), counted({3, 4, 2})});
  for (std::int64_t i = 0; i < 3 * 4 * 2; ++i) {
    EXPECT_EQ(results[0].data<double>()[i], i % 8 < 2 ? 2 : 0) << i;
    EXPECT_EQ(results[1].data<double>()[i], std::pow(2.0, kSteps)) << i;
  }
}

TEST_F(Fold, DtypesOfResults) {
  const Expr x = placeholder({.shape = {3}, .dtype = DType::kInt32});
  EXPECT_EQ(map_fn([](const Expr& e) { return e; }, x, DType::kFloat64).dtype(), DType::kFloat64);
  EXPECT_EQ(map_fn([](const Expr& e) { return greater(e, e); }, x).dtype(), DType::kBool);
}

// A body may capture a constant or a fill. Its gradient must equal that of a placeholder with the same value.
std::vector<Array> gradients_through(const std::function<Expr(const Expr&, const Expr&, const Expr&)>& build,
                                     bool constants) {
  const Array values = counted({2});
  const Expr x = placeholder({.shape = {kUnknown, 2}, .dtype = DType::kFloat64});
  const Expr c = constants ? constant(values) : placeholder({.shape = {2}, .dtype = DType::kFloat64});
  const Expr filled =
      constants ? constant(1.5, DType::kFloat64, {2}) : placeholder({.shape = {2}, .dtype = DType::kFloat64});
  const Expr loss = sum(square(build(x, c, filled)));
  const Exprs first = gradients(loss, {x, c, filled});
  const Exprs second = gradients(sum(square(first[1])) + sum(square(first[2])), {c, filled});
  Exprs inputs{x}, outputs{first[0], first[1], first[2], second[0], second[1]};
  std::vector<Array> feeds{counted({3, 2})};
  if (!constants) {
    inputs.insert(inputs.end(), {c, filled});
    feeds.insert(feeds.end(), {values, Array::from<double>({2}, {1.5, 1.5})});
  }
  std::vector<Array> results = Function(inputs, outputs)(feeds);
  for (Array& a : results) a = a.copy();
  return results;
}

TEST_F(Fold, ConstantsOfTheOutsideHaveGradients) {
  using Build = std::function<Expr(const Expr&, const Expr&, const Expr&)>;
  const Build builds[] = {
      [](const Expr& x, const Expr& c, const Expr& k) {
        return map_fn([&](const Expr& e) { return e * c + k * k; }, x) + x * c * k;
      },
      [](const Expr& x, const Expr& c, const Expr& k) {
        return foldl([&](const Expr& a, const Expr& e) { return a * c + e * k; }, x) + c;
      },
      [](const Expr& x, const Expr& c, const Expr& k) {
        return foldr([&](const Expr& a, const Expr& e) { return a * k + tanh(e * c); }, x);
      },
      [](const Expr& x, const Expr& c, const Expr& k) {
        const auto inner = [&](const Expr& e) { return map_fn([&](const Expr& one) { return one * c * k; }, e); };
        return map_fn([&](const Expr& e) { return inner(expand_dims(e, 1)); }, x);
      },
      [](const Expr& x, const Expr& c, const Expr& k) {
        const Expr up = greater(sum(x), scalar_like(0, x));
        return switch_(
            up, [&] { return x * c * k; }, [&] { return x + k; });
      },
      [](const Expr& x, const Expr& c, const Expr& k) {
        const auto step = [&](const Expr& e, const Exprs& s) {
          const Expr h = tanh(e * s[1] + s[0] * k);
          return std::pair{h, Exprs{h}};
        };
        return rnn(step, expand_dims(x, 0), {expand_dims(c, 0) * 0.0}, {.constants = {c}}).outputs;
      },
  };
  int number = 0;
  for (const Build& build : builds) {
    const std::vector<Array> got = gradients_through(build, true), wanted = gradients_through(build, false);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      for (std::int64_t k = 0; k < wanted[i].size(); ++k)
        EXPECT_NEAR(got[i].data<double>()[k], wanted[i].data<double>()[k], 1e-9) << "build " << number << ", " << i;
    ++number;
  }
}

TEST_F(Fold, SecondGradientsOfPartsOfOpenElements) {
  const auto build = [](const Expr& x) {
    return map_fn([](const Expr& e) { return sum(square(index(e, {Range{1}}))) + sum(exp(slice(e, {0}, {2}))); }, x);
  };
  std::vector<Array> results;
  for (const std::int64_t size : {std::int64_t{4}, kUnknown}) {
    const Expr x = placeholder({.shape = {3, size}, .dtype = DType::kFloat64});
    const Expr first = gradients(sum(build(x)), {x})[0], second = gradients(sum(square(first)), {x})[0];
    for (const Array& a : Function({x}, {first, second})({counted({3, 4})})) results.push_back(a.copy());
  }
  for (std::size_t k = 0; k < 2; ++k)
    for (std::int64_t i = 0; i < 12; ++i)
      EXPECT_DOUBLE_EQ(results[k].data<double>()[i], results[k + 2].data<double>()[i]) << k << ' ' << i;
}

// Each rank keeps its rows of the batch. Each row draws the same numbers as on one rank.
std::vector<Array> mapped(std::string* plan = nullptr) {
  const Expr x = placeholder({.shape = {kUnknown, 40}, .dtype = DType::kFloat64});
  const Variable w = variable(counted({40}));
  const Expr y = map_fn([&](const Expr& e) { return dropout(e * w, 0.5, {3, 1}) + sum(e); }, x);
  Function f({x}, {mean(y), gradients(mean(y), {w})[0], y, gradients(mean(y), {x})[0]});
  const Array feed = counted({7, 40});
  if (plan != nullptr) *plan = Function({x}, {mean(y), gradients(mean(y), {w})[0]}).describe({&feed, 1});
  std::vector<Array> results = f({feed});
  for (Array& a : results) a = a.copy();
  return results;
}

TEST_F(Fold, RanksMapTheirRows) {
  const auto alone = mapped();
  for (int row = 1; row < 7; ++row) {
    int equal = 0;
    for (int j = 0; j < 40; ++j) equal += alone[3].data<double>()[j] == alone[3].data<double>()[row * 40 + j];
    EXPECT_LT(equal, 40) << "each row draws its own";
  }
  for (const int size : {2, 3}) {
    comm::spawn_ranks(size, [&](comm::Communicator& communicator) {
      Session session(3);
      session.distribute(make_data_parallel(communicator));
      SessionScope scope(session);
      std::string plan;
      const auto results = mapped(&plan);
      EXPECT_EQ(plan.find("all_gather"), std::string::npos) << plan;
      for (std::size_t k = 0; k < alone.size(); ++k)
        for (std::int64_t i = 0; i < alone[k].size(); ++i)
          ASSERT_NEAR(results[k].data<double>()[i], alone[k].data<double>()[i], 1e-10);
    });
  }
}

}  // namespace
}  // namespace syncline
