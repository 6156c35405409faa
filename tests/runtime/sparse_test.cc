// Sparse feeds and sparse variables, in one process.
#include <gtest/gtest.h>

#include "syncline/backend/core.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/backend/sparse.h"
#include "syncline/backend/sparse_variable.h"
#include "syncline/session.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

using Indices = std::vector<std::int64_t>;

// Row i has i * step % (columns + 1) entries, so that some are empty and some full.
SparseArray uneven(std::int64_t rows, std::int64_t columns, std::int64_t step, std::uint64_t seed) {
  Indices row_of, column_of;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < r * step % (columns + 1); ++c) {
      row_of.push_back(r);
      column_of.push_back(columns - 1 - c);
    }
  const auto count = static_cast<std::int64_t>(row_of.size());
  return SparseArray::coo({rows, columns}, row_of, column_of, random_doubles({count}, seed));
}

class Sparse : public ::testing::Test {
 protected:
  Session session_{1};
  SessionScope scope_{session_};
};

Expr sparse_input(Shape shape, std::string name = "x") {
  return placeholder({.shape = std::move(shape), .dtype = DType::kFloat64, .sparse = true, .name = std::move(name)});
}

TEST_F(Sparse, PlaceholdersSayWhatTheyAre) {
  const Expr x = sparse_input({kUnknown, 4}), dense = placeholder({.shape = {2, 2}});
  EXPECT_TRUE(is_sparse(x));
  EXPECT_TRUE(is_placeholder(x));
  EXPECT_FALSE(is_sparse(dense));
  EXPECT_FALSE(is_sparse(to_dense(x)));
  EXPECT_TRUE(is_sparse(cast(x, DType::kFloat32)));
  EXPECT_TRUE(is_sparse(identity(x)));
  EXPECT_TRUE(is_sparse(concatenate({x, x})));
  EXPECT_FALSE(is_sparse(concatenate({x, to_dense(x)})));
  EXPECT_EQ(x.shape(), (Shape{kUnknown, 4}));
  EXPECT_EQ(x.dtype(), DType::kFloat64);
  EXPECT_EQ(cast(x, DType::kFloat32).dtype(), DType::kFloat32);
  EXPECT_EQ(x.name(), "x");
  EXPECT_EQ(concatenate({x, x}).shape(), (Shape{kUnknown, 8}));
  EXPECT_EQ(concatenate({x, x}, 0).shape(), (Shape{kUnknown, 4}));
  EXPECT_TRUE(to_dense(dense) == dense);
}

TEST_F(Sparse, AFunctionOfEveryNumberOfEntries) {
  const Expr x = sparse_input({kUnknown, 4}), w = placeholder({.shape = {4, 3}, .dtype = DType::kFloat64});
  Function f({x, w}, {to_dense(x), dot(x, w), shape(x), concatenate({to_dense(x), to_dense(x)}),
                      to_dense(concatenate({x, x})), to_dense(concatenate({x, x}, 0))});
  const Array weights = random_doubles({4, 3}, 9);
  for (const std::int64_t step : {0, 1, 2, 3, 4}) {
    const SparseArray value = uneven(6, 4, step, 3);
    const Array dense = value.to_dense();
    const auto got = f({value, weights});
    expect_near(got[0], dense, 0);
    expect_near(got[1], eval(dot(constant(dense), constant(weights))), 1e-12);
    EXPECT_EQ(got[2].data<std::int32_t>()[0], 6);
    expect_near(got[4], got[3], 0);
    expect_near(got[5], eval(concatenate({constant(dense), constant(dense)}, 0)), 0);
    expect_near(f({dense, weights})[1], got[1], 0);  // a dense array is converted
  }
}

TEST_F(Sparse, UnknownColumnsAndNoRows) {
  const Expr x = sparse_input({kUnknown, kUnknown});
  Function f({x}, {to_dense(x), shape(x), to_dense(concatenate({x, x}))});
  for (const Shape& shape : {Shape{3, 5}, Shape{2, 1}, Shape{0, 4}, Shape{3, 0}}) {
    const SparseArray value = SparseArray::from_dense(random_doubles(shape, 2));
    const auto got = f({value});
    expect_near(got[0], value.to_dense(), 0);
    EXPECT_EQ(got[2].shape(), (Shape{shape[0], 2 * shape[1]}));
  }
}

TEST_F(Sparse, AsManyEntriesShareAPlan) {
  const Expr x = sparse_input({kUnknown, 100});
  Function f({x}, {dot(x, constant(random_doubles({100, 2}, 1)))});
  auto plan_of = [&](std::int64_t entries) {
    Indices rows, columns;
    for (std::int64_t i = 0; i < entries; ++i) rows.push_back(i % 10), columns.push_back(i);
    const std::vector<Feed> feeds{SparseArray::coo({10, 100}, rows, columns, random_doubles({entries}, 1))};
    return f.describe(feeds);
  };
  EXPECT_EQ(plan_of(50), plan_of(80));
  EXPECT_NE(plan_of(40), plan_of(80));
  EXPECT_NE(plan_of(40).find("(10, 4)"), std::string::npos) << plan_of(40);
}

TEST_F(Sparse, ADenseLayerLearnsFromSparseInputAndTargets) {
  const Expr x = sparse_input({kUnknown, 4}), target = placeholder({.shape = {kUnknown, 2}, .dtype = DType::kFloat64});
  const Expr dense_x = placeholder({.shape = {kUnknown, 4}, .dtype = DType::kFloat64});
  auto train = [&](const Expr& input, const Feed& value) {
    const Variable w = variable(random_doubles({4, 2}, 1)), b = variable(random_doubles({2}, 2));
    const Expr loss = mean(square(sigmoid(dot(input, w) + b) - target));
    const auto g = gradients(loss, {w, b});
    Function step({input, target}, {loss}, {update_sub(w, g[0] * 0.5), update_sub(b, g[1] * 0.5)});
    for (int i = 0; i < 5; ++i) step({value, uneven(6, 2, 1, 4)});
    return get_value(w);
  };
  const SparseArray value = uneven(6, 4, 3, 5);
  expect_near(train(x, value), train(dense_x, value.to_dense()), 1e-12);
}

TEST_F(Sparse, EveryDtypeIsFed) {
  for (const DType dtype : {DType::kBool, DType::kUint8, DType::kInt32, DType::kFloat16, DType::kFloat32}) {
    const Expr x = placeholder({.shape = {kUnknown, 2}, .dtype = dtype, .sparse = true});
    const Array dense = doubles({2, 2}, {0, 1, 1, 0}).cast(dtype);
    const auto got = Function({x}, {to_dense(x), to_dense(concatenate({x, x})), to_dense(cast(x, DType::kFloat64))})(
        {SparseArray::from_dense(dense)});
    expect_near(got[0], dense, 0);
    expect_values(got[1], {0, 1, 0, 1, 1, 0, 1, 0});
    expect_values(got[2], {0, 1, 1, 0});
    if (is_floating(dtype)) expect_values(Function({x}, {dot(x, constant(dense))})({dense})[0], {1, 0, 0, 1});
  }
}

TEST_F(Sparse, Variables) {
  const SparseArray value = uneven(5, 4, 3, 1);
  const SparseVariable v = variable(value, {.name = "table"});
  EXPECT_TRUE(is_sparse(v));
  EXPECT_EQ(v.name(), "table");
  EXPECT_EQ(v.shape(), (Shape{5, 4}));
  expect_near(eval(v), value.to_dense(), 0);
  expect_near(get_value(v).to_dense(), value.to_dense(), 0);
  EXPECT_EQ(get_value(v).count(), value.count());

  Function f({}, {dot(v, constant(random_doubles({4, 3}, 2)))});
  const SparseArray other = uneven(5, 4, 2, 8);
  f({});
  set_value(v, other);
  expect_near(f({})[0], eval(dot(constant(other.to_dense()), constant(random_doubles({4, 3}, 2)))), 1e-12);
  EXPECT_NE(message_of<ShapeError>([&] { set_value(v, uneven(4, 4, 1, 1)); }).find("(4, 4)"), std::string::npos);
  EXPECT_NE(message_of<DTypeError>([&] { set_value(v, other.cast(DType::kFloat32)); }).find("float32"),
            std::string::npos);
  const SparseArray full = SparseArray::from_dense(random_doubles({5, 4}, 7));
  const SparseVariable small = variable(uneven(5, 4, 0, 1));
  EXPECT_NE(message_of<ValueError>([&] { set_value(small, full); }).find("the value has 20"), std::string::npos);
}

TEST_F(Sparse, ValuesCanBeTrained) {
  const SparseVariable v = variable(uneven(5, 4, 3, 1));
  const Array wanted = random_doubles({5, 4}, 3);
  const Expr loss = sum(square(to_dense(v) - constant(wanted)));
  Function step({}, {loss}, {update_sub(v.values(), gradients(loss, {v.values()})[0] * 0.5)});
  step({});
  const Array now = get_value(v).to_dense();
  const Array mask = uneven(5, 4, 3, 1).to_dense();
  for (std::int64_t i = 0; i < 20; ++i)
    EXPECT_NEAR(now.data<double>()[i], mask.data<double>()[i] == 0 ? 0 : wanted.data<double>()[i], 1e-12);
}

TEST_F(Sparse, WhatIsRefused) {
  const Expr x = sparse_input({kUnknown, 4}), w = placeholder({.shape = {3, 2}, .dtype = DType::kFloat64});
  for (const std::string& text : {message_of<ValueError>([&] { relu(x); }), message_of<ValueError>([&] { sum(x); }),
                                  message_of<ValueError>([&] { x + x; }), message_of<ValueError>([&] { dot(w, x); }),
                                  message_of<ValueError>([&] { Function({x}, {x}); })})
    EXPECT_NE(text.find("to_dense"), std::string::npos) << text;
  EXPECT_NE(message_of<ShapeError>([&] { dot(x, w); }).find("(?, 4) and the dense one (3, 2)"), std::string::npos);
  EXPECT_NE(message_of<ShapeError>([&] {
              dot(x, placeholder({.shape = {4, 2, 2}, .dtype = DType::kFloat64}));
            }).find("(4, 2, 2)"),
            std::string::npos);
  EXPECT_NE(message_of<DTypeError>([&] {
              dot(x, placeholder({.shape = {4, 2}}));
            }).find("float64 and float32"),
            std::string::npos);
  EXPECT_NE(message_of<ShapeError>([&] { sparse_input({2, 3, 4}); }).find("two dimensions"), std::string::npos);
  EXPECT_NE(message_of<ShapeError>([&] {
              concatenate({x, sparse_input({kUnknown, 5})}, 0);
            }).find("(?, 5)"),
            std::string::npos);
  EXPECT_NE(message_of<DTypeError>([&] {
              concatenate({x, cast(x, DType::kFloat32)});
            }).find("float32"),
            std::string::npos);
  EXPECT_NE(message_of<ValueError>([&] { concatenate({x, x}, 2); }).find("concatenate"), std::string::npos);
  EXPECT_NE(message_of<ValueError>([&] { sparse_values(w); }).find("dense"), std::string::npos);
  Function f({x}, {to_dense(x)});
  EXPECT_NE(message_of<ShapeError>([&] { f({uneven(2, 5, 1, 1)}); }).find("(2, 5)"), std::string::npos);
  EXPECT_NE(message_of<DTypeError>([&] { f({uneven(2, 4, 1, 1).cast(DType::kFloat32)}); }).find("float32"),
            std::string::npos);
}

}  // namespace
}  // namespace syncline::testing
