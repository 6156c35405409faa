// Reductions, and functions that consist of them.
#include "tests/graphs/reference.h"
#include "tests/graphs/table.h"

namespace syncline::graphs {
namespace {

#define REDUCTION(function, type, check)                                                    \
  {                                                                                         \
#function, [](Choices& c) {                                                               \
      const Expr x = c.operand("x", Type::type, 0, 4);                                        \
      const std::vector<int> axes = c.axes("axes", x);                                        \
      const bool keepdims = c.flag("keepdims");                                               \
      if (c.integer("whole", 0, 3) == 0) return SYNCLINE_MADE(function(x));                   \
      return c.made(function(x, axes, keepdims), #function "(x, axes, keepdims != 0)", check);     \
    } \
  }

Built scan_line(Choices& c) {
  const Expr x = c.operand("x", Type::kNumber, 1);
  const int axis = c.axis("axis", x);
  const bool exclusive = c.flag("exclusive"), reverse = c.flag("reverse");
  if (c.flag("sums"))
    return c.made(cumsum(x, axis, {.exclusive = exclusive, .reverse = reverse}),
                  "cumsum(x, axis, {.exclusive = exclusive != 0, .reverse = reverse != 0})");
  return c.made(cumprod(x, axis, {.exclusive = exclusive, .reverse = reverse}),
                "cumprod(x, axis, {.exclusive = exclusive != 0, .reverse = reverse != 0})");
}

#define ALONG(function, type)                        \
  {                                                  \
#function, [](Choices& c) {                        \
      const Expr x = c.operand("x", Type::type, 1);    \
      const int axis = c.axis("axis", x);              \
      return SYNCLINE_MADE(function(x, axis));         \
    } \
  }

// Rows of more than one block.
Built wide_line(Choices& c) {
  const auto rows = c.integer("rows", 1, 5), columns = c.integer("columns", 2049, 5000);
  const Expr x = c.large("x", c.flag("across") ? Shape{columns, rows} : Shape{rows, columns});
  const int axis = c.axis("axis", x);
  switch (c.integer("way", 0, 5)) {
    case 0: return SYNCLINE_MADE(sum(x, {axis}));
    case 1: return SYNCLINE_MADE(max(x, {axis}));
    case 2: return SYNCLINE_MADE(mean(x, {axis}));
    case 3: return SYNCLINE_MADE(logsumexp(x, {axis}));
    case 4: return SYNCLINE_MADE(softmax(x, axis));
    default: return SYNCLINE_MADE(cumsum(x, axis));
  }
}

// Rows of more than one block of a search, the last of which is not whole. Equal elements stand in several blocks.
Built wide_arg_line(Choices& c) {
  const auto rows = c.integer("rows", 1, 2), columns = c.integer("columns", 4097, 9999);
  Choices::require(columns % 4096 != 0);
  const Shape shape = c.integer("across", 0, 4) == 0 ? Shape{columns, rows} : Shape{rows, columns};
  const DType dtype = c.dtype("dtype", {c.floatx(), c.floatx(), DType::kInt32, DType::kInt64, DType::kInt8});
  const bool tied = c.integer("tied", 0, 3) == 0;
  const Expr x = tied ? c.fresh("x", dtype, shape, Pool::kTies) : c.large("x", shape);
  const int axis = c.axis("axis", x);
  if (c.flag("least")) return SYNCLINE_CHECKED(&check_argmin, argmin(x, axis));
  return SYNCLINE_CHECKED(&check_argmax, argmax(x, axis));
}

// Values that are large enough for programs to compute them again instead of storing them.
Built normalized_line(Choices& c) {
  const Expr x = c.large("x", c.flag("across") ? Shape{390, 100} : Shape{100, 390});
  const int axis = c.axis("axis", x);
  switch (c.integer("way", 0, 2)) {
    case 0: return SYNCLINE_MADE((x - mean(x, {axis}, true)) / sqrt(var(x, {axis}, true) + 0.5));
    case 1: return SYNCLINE_MADE((x * 0.25) * mean(exp(x * 0.25), {axis}, true));
    default: return SYNCLINE_MADE(relu(x - max(x, {axis}, true) + 1.5) * sum(x, {axis}, true));
  }
}

Built sum_like_line(Choices& c) {
  const Expr x = c.operand("x", Type::kNumber, 1);
  Shape shape = x.shape();
  for (int i = 0; i < shape.ndim(); ++i)
    if (c.integer("one", 0, 2) == 0) shape[i] = 1;
  const Expr like = c.of_meta("like", {x.dtype(), shape});
  return SYNCLINE_MADE(sum_like(x, like));
}

Built count_line(Choices& c) {
  const Expr x = c.operand("x", Type::kAny, 1);
  const std::vector<int> axes = c.axes("axes", x);
  const DType dtype = c.dtype("dtype", {DType::kFloat32, DType::kInt32, DType::kInt64, DType::kFloat64});
  return SYNCLINE_MADE(count(x, axes, dtype));
}

Built normalize_line(Choices& c) {
  const Expr x = c.floating("x", 1);
  const std::vector<int> axes = c.axes("axes", x);
  return SYNCLINE_MADE(l2_normalize(x, axes));
}

}  // namespace

std::vector<Entry> reduction_entries() {
  return {
      REDUCTION(sum, kNumber, &check_sum),
      REDUCTION(prod, kNumber, &check_prod),
      REDUCTION(max, kNumber, &check_max),
      REDUCTION(min, kNumber, &check_min),
      REDUCTION(any, kBool, nullptr),
      REDUCTION(all, kBool, nullptr),
      REDUCTION(mean, kAny, &check_mean),
      REDUCTION(var, kAny, nullptr),
      REDUCTION(std, kAny, nullptr),
      REDUCTION(logsumexp, kFloating, nullptr),
      ALONG(argmax, kAny),
      ALONG(argmin, kAny),
      ALONG(softmax, kFloating),
      {"batch_mean",
       [](Choices& c) {
         const Expr x = c.floating("x", 1);
         return SYNCLINE_MADE(mean(x, {0}));
       },
       4},
      {"scan", &scan_line, 6},
      {"wide", &wide_line, 2, 0},
      {"wide_arg", &wide_arg_line, 2, 0},
      {"normalized", &normalized_line, 2, 0},
      {"sum_like", &sum_like_line},
      {"count", &count_line},
      {"l2_normalize", &normalize_line},
      {"shape",
       [](Choices& c) {
         const Expr x = c.operand("x", Type::kAny);
         return SYNCLINE_MADE(shape(x));
       }},
  };
}

}  // namespace syncline::graphs
