// Values without elements, and rewrites of a graph that must keep shapes.
#include <gtest/gtest.h>

#include "ops/graph/op.h"
#include "syncline/backend/control.h"
#include "syncline/backend/convolution.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/session.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

class EmptyValuesTest : public ::testing::Test {
 protected:
  Expr input(Shape shape) { return placeholder({.shape = std::move(shape), .dtype = DType::kFloat64}); }
  Array rows(std::int64_t n) { return random_doubles({n, 3}, 1); }
  Session session_;
  SessionScope scope_{session_};
};

using Binary = Expr (*)(const Expr&, const Expr&);

TEST_F(EmptyValuesTest, NoRowsDoNotMeetSeveral) {
  const Expr x = input({kUnknown, 3}), y = input({kUnknown, 3});
  for (const Binary op : {Binary{&add}, Binary{&maximum}, Binary{&greater}, Binary{&div}}) {
    Function f({x, y}, {op(x, y)});
    for (const int a : {0, 4})
      EXPECT_NE(message_of<ShapeError>([&] { f({rows(a), rows(4 - a)}); }).find("do not broadcast"), std::string::npos);
  }
  const Expr none = constant(Array(DType::kFloat64, Shape{0})), v = input({kUnknown});
  Function f({v}, {greater(none, v)});
  EXPECT_THROW(f({doubles({1, 2})}), ShapeError);
  EXPECT_THROW(switch_(input({0}), input({2, 2}), input({2, 2})), ShapeError);
}

TEST_F(EmptyValuesTest, NoRowsMeetOne) {
  const Expr x = input({kUnknown, 3}), y = input({kUnknown, 3});
  const Expr z = x * y + sum(x, 0) + exp(y);
  Function f({x, y}, {z, gradients(sum(z), {x, y})[0], gradients(sum(z), {x, y})[1]});
  for (const auto& [a, b] : {std::pair{0, 1}, std::pair{1, 0}, std::pair{0, 0}}) {
    const std::vector<Array> got = f({rows(a), rows(b)});
    EXPECT_EQ(got[0].shape(), (Shape{0, 3}));
    EXPECT_EQ(got[1].shape(), (Shape{a, 3}));
    EXPECT_EQ(got[2].shape(), (Shape{b, 3}));
    for (const double d : numbers(got[2])) EXPECT_EQ(d, 0);
  }
}

TEST_F(EmptyValuesTest, SlicesOfASumOfOneRow) {
  const Expr a = input({kUnknown, 3}), b = input({kUnknown, 3}), bias = input({3}), row = input({1, 3});
  const Expr rest = index(a + b, {Range{1}});
  Function f({a, b, bias, row}, {rest, index(a + bias, {Range{1}}), index(a + row, {Range{1}}), sum(rest)});
  const Array v = doubles({1, 2, 3}), one = doubles(Shape{1, 3}, {1, 2, 3});
  const std::vector<Array> got = f({rows(1), rows(1), v, one});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)].shape(), (Shape{0, 3})) << i;
  EXPECT_EQ(got[3].item(), 0);
  EXPECT_EQ(f({rows(3), rows(3), v, one})[2].shape(), (Shape{2, 3}));
}

TEST_F(EmptyValuesTest, AFoldOverASumOfOneRow) {
  const Expr a = input({kUnknown, 3}), b = input({kUnknown, 3});
  Function f({a, b}, {foldl([](const Expr& x, const Expr& e) { return x * 10.0 + e; }, a + b)});
  const Array x = doubles(Shape{1, 3}, {1, 2, 3}), y = doubles(Shape{1, 3}, {4, 5, 6});
  expect_values(f({x, y})[0], {5, 7, 9});
}

TEST_F(EmptyValuesTest, ABilinearImageOfOnePixelAndABias) {
  const Expr x = input({1, 1, 1, 2}), bias = input({2});
  Function f({x, bias}, {resize_images(bias_add(x, bias, "channels_last"), 2, 2, "channels_last", "bilinear")});
  const Array got = f({doubles(Shape{1, 1, 1, 2}, {1, 2}), doubles({10, 20})})[0];
  EXPECT_EQ(got.shape(), (Shape{1, 2, 2, 2}));
  expect_values(got, {11, 22, 11, 22, 11, 22, 11, 22});
}

TEST_F(EmptyValuesTest, TheGradientOfARotationOfOneElement) {
  const Expr x = input({2, kUnknown});
  const Expr turned = concatenate({index(x, {Ellipsis{}, Range{1}}), index(x, {Ellipsis{}, Range{{}, 1}})});
  Function f({x}, {turned, gradients(sum(square(turned)), {x})[0]});
  const std::vector<Array> got = f({doubles(Shape{2, 1}, {3, 4})});
  expect_values(got[0], {3, 4});
  expect_values(got[1], {6, 8});
}

struct Widened {
  static constexpr std::string_view kName = "widened";
  using Attrs = NoAttrs;
  static constexpr std::tuple<> fields{};
  static Meta infer(const Attrs&, std::span<const Meta> in) { return in[0]; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static Expr simplify(const Attrs&, std::span<const Expr> in, const Meta&) { return expand_dims(in[0], 0); }
  static constexpr NoGradient grad{"it is for a test"};
};

TEST_F(EmptyValuesTest, ARewriteThatChangesAShapeIsFound) {
  const Expr x = input({2, 3});
  Function f({x}, {apply<Widened>({x})});
  const std::string message = message_of<InternalError>([&] { f({rows(2)}); });
  EXPECT_NE(message.find("widened of float64(2, 3) was rewritten as expand_dims of float64(1, 2, 3)"),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace syncline::testing
