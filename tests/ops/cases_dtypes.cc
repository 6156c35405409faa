// Op cases on integers and bool whose results differ from double arithmetic: they wrap around, round, or change dtype.
// Most are operators; tests/oracle covers the dtypes of Keras's functions.
#include <cmath>

#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "tests/ops/op_case.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;

Reference literal(Shape shape, std::vector<double> values) {
  return [=](std::span<const Tensor>) { return Tensor{shape, values}; };
}

OpCase row(std::string name, std::vector<InputSpec> inputs, Builder build, std::vector<double> wanted) {
  const Shape shape{static_cast<std::int64_t>(wanted.size())};
  return {.name = std::move(name),
          .inputs = std::move(inputs),
          .build = std::move(build),
          .reference = literal(shape, std::move(wanted)),
          .gradient = false};
}

InputSpec numbers(DType dtype, std::vector<double> values) {
  return {.shape = {static_cast<std::int64_t>(values.size())}, .dtype = dtype, .values = std::move(values)};
}

std::vector<OpCase> rows() {
  const auto i8 = DType::kInt8, u8 = DType::kUint8, i32 = DType::kInt32, i64 = DType::kInt64;
  const InputSpec square{.shape = {1, 2, 2}, .dtype = i8, .values = {1, 2, 3, 100}};
  const double low = -2147483648.0, high = 2147483647.0;
  return {
      row("add_int32_wraps", {numbers(i32, {high, low, 5})}, [](const Exprs& x) { return x[0] + 1.0; },
          {low, low + 1, 6}),
      row("sub_int32_wraps", {numbers(i32, {high, low})}, [](const Exprs& x) { return x[0] - 1.0; }, {high - 1, high}),
      row("mul_int32_wraps", {numbers(i32, {65536, 3})}, [](const Exprs& x) { return x[0] * x[0]; }, {0, 9}),
      row("neg_int32_wraps", {numbers(i32, {low, 7})}, [](const Exprs& x) { return -x[0]; }, {low, -7}),
      row("add_uint8_wraps", {numbers(u8, {0, 200})}, [](const Exprs& x) { return x[0] + 300.0; }, {44, 244}),
      row("sub_uint8_wraps", {numbers(u8, {0, 200})}, [](const Exprs& x) { return x[0] - 1.0; }, {255, 199}),
      row("sum_int8_wraps", {numbers(i8, {100, 100})}, [](const Exprs& x) { return sum(x[0], {0}, true); }, {-56}),
      row("div_int32_is_true_division", {numbers(i32, {7, -7, 5, low}), numbers(i32, {2, 2, 0, -1})},
          [](const Exprs& x) { return cast(x[0] / x[1], DType::kFloat32); }, {3.5, -3.5, INFINITY, 2147483648.0}),
      row("div_int8_is_true_division", {numbers(i8, {7, -7}), numbers(i8, {2, 4})},
          [](const Exprs& x) { return x[0] / x[1]; }, {3.5, -1.75}),
      row("floordiv_int32", {numbers(i32, {7, -7, 7, -8, 5, low}), numbers(i32, {2, 2, -2, 2, 0, -1})},
          [](const Exprs& x) { return floordiv(x[0], x[1]); }, {3, -4, -4, -4, 0, low}),
      row("floordiv_uint8", {numbers(u8, {7, 255, 3}), numbers(u8, {2, 255, 255})},
          [](const Exprs& x) { return floordiv(x[0], x[1]); }, {3, 1, 0}),
      row("floormod_int32", {numbers(i32, {7, -7, 7, -7, 5, low, low}), numbers(i32, {2, 2, -2, -2, 0, -1, 3})},
          [](const Exprs& x) { return floormod(x[0], x[1]); }, {1, 1, -1, -1, 5, 0, 1}),
      row("floormod_uint8", {numbers(u8, {7, 255, 3}), numbers(u8, {2, 2, 0})},
          [](const Exprs& x) { return floormod(x[0], x[1]); }, {1, 1, 3}),
      row("pow_int64_is_exact", {numbers(i64, {3, -3, 2, 0}), numbers(i64, {33, 3, 52, 0})},
          [](const Exprs& x) { return pow(x[0], x[1]); }, {5559060566555523.0, -27, 4503599627370496.0, 1}),
      // One sample, the matrix (1 2; 3 100), times itself over three pairs of axes.
      row("batch_dot_int8_wraps", {square},
          [](const Exprs& x) {
            return flatten(batch_dot(x[0], x[0], {2, 1}));
          },
          {7, -54, 47, 22}),
      row("batch_dot_int8_columns", {square},
          [](const Exprs& x) {
            return flatten(batch_dot(x[0], x[0], {1, 1}));
          },
          {10, 46, 46, 20}),
      row("batch_dot_int8_rows", {square},
          [](const Exprs& x) {
            return flatten(batch_dot(x[0], x[0], {2, 2}));
          },
          {5, -53, -53, 25}),
      row("mul_bool_is_and", {numbers(DType::kBool, {0, 1, 1}), numbers(DType::kBool, {1, 0, 1})},
          [](const Exprs& x) { return x[0] * x[1]; }, {0, 0, 1}),
  };
}

SYNCLINE_OP_CASES(rows)

}  // namespace
}  // namespace syncline::testing
