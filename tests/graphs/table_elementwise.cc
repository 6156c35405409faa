// Elementwise functions.
#include <cmath>

#include "tests/graphs/reference.h"
#include "tests/graphs/table.h"

namespace syncline::graphs {
namespace {

#define UNARY(function, type)                        \
  {                                                  \
#function, [](Choices& c) {                        \
      const Expr x = c.operand("x", Type::type);       \
      return SYNCLINE_MADE(function(x));               \
    } \
  }
#define BINARY(function, type)                       \
  {                                                  \
#function, [](Choices& c) {                        \
      const Expr x = c.operand("x", Type::type);       \
      const Expr y = c.broadcasting("y", x);           \
      return SYNCLINE_MADE(function(x, y));            \
    } \
  }

Built relu_line(Choices& c) {
  const Expr x = c.floating("x");
  const double alpha = c.number("alpha", {0, 0.25, 0.5, 1, -0.5}), threshold = c.number("threshold", {0, 0, 1, -0.5});
  const double most = c.number("most", {6, 1, 0.5, 2});
  if (c.flag("bounded"))
    return c.made(relu(x, {.alpha = alpha, .max_value = most, .threshold = threshold}),
                  "relu(x, {.alpha = alpha, .max_value = most, .threshold = threshold})", &check_relu);
  return c.made(relu(x, {.alpha = alpha, .threshold = threshold}), "relu(x, {.alpha = alpha, .threshold = threshold})",
                &check_relu);
}

// Parameters that are tensors.
Built relu_tensors_line(Choices& c) {
  const Expr x = c.floating("x");
  const Expr alpha = c.broadcasting("alpha", x);
  if (c.flag("exponential")) return SYNCLINE_MADE(elu(x, alpha));
  const Expr other = c.broadcasting("other", x);
  switch (c.integer("way", 0, 3)) {
    case 0: return SYNCLINE_MADE(relu(x, ReluTensors{.alpha = alpha}));
    case 1: return SYNCLINE_MADE(relu(x, ReluTensors{.alpha = alpha, .max_value = other}));
    case 2: return SYNCLINE_MADE(relu(x, ReluTensors{.max_value = alpha, .threshold = other}));
    default: return SYNCLINE_MADE(relu(x, ReluTensors{.alpha = alpha, .threshold = other}));
  }
}

Built clip_line(Choices& c) {
  const Expr x = c.operand("x", Type::kNumber);
  const double low = c.number("low", {-1, 0, -2}), high = c.number("high", {1, 0, 2, -1});
  return SYNCLINE_MADE(clip(x, low, high));
}

Built cast_line(Choices& c) {
  const Expr x = c.operand("x", Type::kAny);
  const DType dtype = c.any_dtype("dtype");
  return SYNCLINE_MADE(cast(x, dtype));
}

Built select_line(Choices& c) {
  const Expr x = c.operand("x", Type::kAny);
  const Expr y = c.broadcasting("y", x);
  const Expr condition = c.of_shape("condition", Type::kBool, x.shape());
  return SYNCLINE_MADE(select(condition, x, y));
}

Built pow_line(Choices& c) {
  const Expr x = c.floating("x");
  const double a = c.number("a", {2, 0.5, 3, -1, 0, 1, -2});
  return SYNCLINE_MADE(pow(x, a));
}

Built scalar_line(Choices& c) {
  const Expr x = c.floating("x");
  const double a = c.number("a", {2, 0.5, 1, -1, 0, 0.9, 0.1});
  switch (c.integer("way", 0, 4)) {
    case 0: return SYNCLINE_MADE(x * a);
    case 1: return SYNCLINE_MADE(x + a);
    case 2: return SYNCLINE_MADE(a - x);
    case 3: return SYNCLINE_MADE(x / (a + 2.0));
    default: return SYNCLINE_MADE(a / x);
  }
}

// A sum of many operands of one shape: the largest elementwise groups.
Built wide_sum_line(Choices& c) {
  const Expr x = c.floating("x", 1, 2);
  const auto terms = c.integer("terms", 10, 30);
  Expr total;
  std::string text;
  for (std::int64_t i = 0; i < terms; ++i) {
    const Expr condition = c.fresh("condition", DType::kBool, x.shape(), Pool::kTies);
    const Expr y = c.fresh("y", x.dtype(), x.shape()), z = c.fresh("z", x.dtype(), x.shape());
    const Expr one = switch_(condition, y, z);
    text += (i > 0 ? " + " : "") + c.text("switch_(condition, y, z)");
    total = total ? total + one : one;
  }
  return c.made(total, text);
}

}  // namespace

std::vector<Entry> elementwise_entries() {
  return {
      BINARY(add, kNumber),
      BINARY(sub, kNumber),
      BINARY(mul, kNumber),
      BINARY(div, kNumber),
      BINARY(maximum, kNumber),
      BINARY(minimum, kNumber),
      BINARY(pow, kFloating),
      BINARY(floordiv, kNumber),
      BINARY(floormod, kNumber),
      BINARY(equal, kAny),
      BINARY(not_equal, kAny),
      BINARY(greater, kNumber),
      BINARY(greater_equal, kNumber),
      BINARY(less, kNumber),
      BINARY(less_equal, kNumber),
      BINARY(logical_and, kBool),
      UNARY(logical_not, kBool),
      UNARY(neg, kNumber),
      UNARY(square, kNumber),
      UNARY(abs, kNumber),
      UNARY(sqrt, kFloating),
      UNARY(exp, kFloating),
      UNARY(log, kFloating),
      UNARY(round, kNumber),
      UNARY(sign, kNumber),
      UNARY(sin, kFloating),
      UNARY(cos, kFloating),
      UNARY(tanh, kFloating),
      UNARY(sigmoid, kFloating),
      UNARY(hard_sigmoid, kFloating),
      UNARY(softplus, kFloating),
      UNARY(softsign, kFloating),
      UNARY(identity, kAny),
      UNARY(stop_gradient, kAny),
      UNARY(zeros_like, kAny),
      UNARY(ones_like, kAny),
      {"elu",
       [](Choices& c) {
         const Expr x = c.floating("x");
         const double alpha = c.number("alpha", {1, 0.5, 2});
         return SYNCLINE_MADE(elu(x, alpha));
       }},
      {"relu", &relu_line, 8},
      {"relu_tensors", &relu_tensors_line, 4},
      {"clip", &clip_line},
      {"cast", &cast_line},
      {"select", &select_line, 6},
      {"pow", &pow_line},
      {"scalar", &scalar_line, 12},
      {"wide_sum", &wide_sum_line, 1, 0},
      {"fill_like",
       [](Choices& c) {
         const Expr x = c.operand("x", Type::kAny);
         const double a = c.number("a", {0, 1, 2});
         return SYNCLINE_MADE(fill_like(x, a));
       }},
  };
}

}  // namespace syncline::graphs
