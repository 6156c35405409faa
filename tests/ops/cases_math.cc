// Op cases of the elementwise ops.
#include <algorithm>
#include <cmath>
#include <limits>

#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

OpCase unary(std::string name, Expr (*f)(const Expr&), double (*reference)(double), double low, double high) {
  return {.name = std::move(name),
          .inputs = {{.shape = {5, 3}, .low = low, .high = high}},
          .build = [f](const Exprs& x) { return f(x[0]); },
          .reference = elementwise(reference),
          .large = {{.shape = {512, 1024}, .low = low, .high = high}},
          .second_gradient = true};
}

OpCase binary(std::string name, Expr (*f)(const Expr&, const Expr&), double (*reference)(double, double),
              double low = -1, double high = 1) {
  return {.name = std::move(name),
          .inputs = {{.shape = {5, 3}, .low = low, .high = high}, {.shape = {5, 3}, .low = low, .high = high}},
          .build = [f](const Exprs& x) { return f(x[0], x[1]); },
          .reference = elementwise(reference),
          .large = {{.shape = {512, 1024}, .low = low, .high = high}, {.shape = {512, 1024}, .low = low, .high = high}},
          .second_gradient = true};
}

// The case with other shapes and without large inputs.
OpCase with_shapes(OpCase row, const std::string& suffix, const std::vector<Shape>& shapes) {
  row.name += suffix;
  row.large.clear();
  for (std::size_t i = 0; i < shapes.size(); ++i) row.inputs[i].shape = shapes[i];
  return row;
}

OpCase with_dtype_of(OpCase row, const std::string& suffix, DType dtype, double low, double high) {
  row.name += suffix;
  row.large.clear();
  for (InputSpec& input : row.inputs) {
    input.dtype = dtype;
    input.low = low;
    input.high = high;
  }
  return row;
}

// The case at values on the edges of the domain, where gradients are undefined.
OpCase at_values(OpCase row, const std::string& suffix, const std::vector<std::vector<double>>& values) {
  row.name += suffix;
  row.large.clear();
  row.gradient = row.second_gradient = false;
  row.placement = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    row.inputs[i].values = values[i];
    row.inputs[i].shape = Shape{static_cast<std::int64_t>(values[i].size())};
  }
  return row;
}

OpCase with_gradient(OpCase row) {
  row.gradient = row.second_gradient = true;
  return row;
}

// Unix times, powers of two up to 2^127, numbers around 39000 (the limit without range reduction), small numbers.
// float32 rounds some of them.
const std::vector<double> kAngles{1.7e9 - 64, -0x1p30, 0.5, 0x1p100, -0x1p127, 39000, 39001, -39000.5, 53e6, 1, 0x1p50};

double sign_of(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
double softplus_of(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

std::vector<OpCase> unary_rows() {
  std::vector<OpCase> rows{
      unary(
          "neg", &neg, [](double x) { return -x; }, -2, 2),
      unary(
          "square", &square, [](double x) { return x * x; }, -2, 2),
      unary(
          "abs", &abs, [](double x) { return std::abs(x); }, -2, 2),
      unary("sign", &sign, &sign_of, -2, 2),
      unary(
          "sqrt", &sqrt, [](double x) { return std::sqrt(std::max(x, 0.0)); }, 0.2, 3),
      unary(
          "exp", &exp, [](double x) { return std::exp(x); }, -3, 3),
      unary(
          "log", &log, [](double x) { return std::log(x); }, 0.2, 4),
      unary(
          "round", &round, [](double x) { return std::nearbyint(x); }, -5, 5),
      unary(
          "sin", &sin, [](double x) { return std::sin(x); }, -6, 6),
      unary(
          "cos", &cos, [](double x) { return std::cos(x); }, -6, 6),
      unary(
          "tanh", &tanh, [](double x) { return std::tanh(x); }, -3, 3),
      unary(
          "sigmoid", &sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -4, 4),
      unary("softplus", &softplus, &softplus_of, -4, 4),
  };
  const auto row = [&](std::string_view name) {
    return *std::find_if(rows.begin(), rows.end(), [&](const OpCase& r) { return r.name == name; });
  };
  const std::vector<OpCase> more{
      at_values(row("exp"), "_at_edges", {{-kInfinity, kInfinity, kNaN, -1000, 1000, 0}}),
      at_values(row("log"), "_at_edges", {{0, kInfinity, kNaN, -1, 1}}),
      at_values(row("sqrt"), "_of_negatives", {{-1, 0, 4, kInfinity}}),
      with_gradient(at_values(row("sqrt"), "_gradient_of_negatives", {{-1, -0.25, 4, 9}})),
      at_values(row("sin"), "_of_large", {kAngles}),
      at_values(row("cos"), "_of_large", {kAngles}),
      at_values(row("round"), "_of_halves", {{-1.5, -0.5, 0.5, 1.5, 2.5}}),
      at_values(row("sign"), "_of_zero", {{-3, 0, 7}}),
      at_values(row("sigmoid"), "_at_edges", {{-kInfinity, -200, 0, 200, kInfinity}}),
      at_values(row("softplus"), "_at_edges", {{-200, 0, 200}}),
      with_shapes(row("exp"), "_of_scalar", {Shape{}}),
      with_shapes(row("tanh"), "_of_17", {Shape{17}}),
      with_dtype_of(row("neg"), "_of_integers", DType::kInt32, -9, 9),
      with_dtype_of(row("abs"), "_of_integers", DType::kInt16, -9, 9),
      with_dtype_of(row("sign"), "_of_integers", DType::kInt8, -3, 3),
  };
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

std::vector<OpCase> binary_rows() {
  std::vector<OpCase> rows{
      binary("add", &add, [](double x, double y) { return x + y; }),
      binary("sub", &sub, [](double x, double y) { return x - y; }),
      binary("mul", &mul, [](double x, double y) { return x * y; }),
      binary(
          "div", &div, [](double x, double y) { return x / y; }, 0.5, 2),
      binary("maximum", &maximum, [](double x, double y) { return std::max(x, y); }),
      binary("minimum", &minimum, [](double x, double y) { return std::min(x, y); }),
      binary(
          "pow", static_cast<Expr (*)(const Expr&, const Expr&)>(&pow),
          [](double x, double y) { return std::pow(x, y); }, 0.5, 2),
  };
  const std::size_t plain = rows.size();
  for (std::size_t i = 0; i < plain; ++i) {
    rows.push_back(with_shapes(rows[i], "_row", {{5, 3}, {3}}));
    rows.push_back(with_shapes(rows[i], "_column_and_row", {{4, 1}, {1, 3}}));
    rows.push_back(with_shapes(rows[i], "_scalar", {{4, 2, 3}, {}}));
  }
  for (OpCase& row : rows)
    if (row.name.ends_with("_column_and_row")) row.open_batch = false;  // (?, 1) and (?, 3) are ambiguous
  const auto integers = [&](std::size_t i) { return with_dtype_of(rows[i], "_of_integers", DType::kInt64, -9, 9); };
  for (const std::size_t i : {0u, 1u, 2u, 4u, 5u}) rows.push_back(integers(i));
  rows.push_back({.name = "pow_of_negative_base",
                  .inputs = {{.shape = {5, 2}, .low = -2, .high = -0.5}},
                  .build = [](const Exprs& x) { return pow(x[0], 3.0); },
                  .reference = elementwise([](double x) { return x * x * x; }),
                  .second_gradient = true});
  rows.push_back({.name = "pow_of_many_elements",
                  .inputs = {{.shape = {5, 2}, .low = 0.1, .high = 3}},
                  .build = [](const Exprs& x) { return pow(x[0], -1.3); },
                  .reference = elementwise([](double x) { return std::pow(x, -1.3); }),
                  .large = {{.shape = {300, 331}, .low = 0.1, .high = 3}},
                  .second_gradient = true});
  return rows;
}

std::vector<OpCase> floor_rows() {
  OpCase quotient = binary("floordiv", &floordiv, [](double x, double y) { return std::floor(x / y); });
  OpCase rest = binary("floormod", &floormod, [](double x, double y) { return x - y * std::floor(x / y); });
  for (OpCase* row : {&quotient, &rest})
    for (std::vector<InputSpec>* inputs : {&row->inputs, &row->large}) {  // where the quotient is constant
      (*inputs)[0].low = 5, (*inputs)[0].high = 5.9;
      (*inputs)[1].low = -2.4, (*inputs)[1].high = -2;
    }
  const std::vector<double> x{5.5, -5.5, 5.5, -5.5, 6, -6, 0}, y{2, 2, -2, -2, 3, -3, 2};
  return {quotient, rest, with_shapes(rest, "_row", {{5, 3}, {3}}), at_values(quotient, "_of_signs", {x, y}),
          at_values(rest, "_of_signs", {x, y})};
}

std::vector<OpCase> comparison_rows() {
  std::vector<OpCase> rows{
      binary("equal", &equal, [](double x, double y) { return double(x == y); }),
      binary("not_equal", &not_equal, [](double x, double y) { return double(x != y); }),
      binary("greater", &greater, [](double x, double y) { return double(x > y); }),
      binary("greater_equal", &greater_equal, [](double x, double y) { return double(x >= y); }),
      binary("less", &less, [](double x, double y) { return double(x < y); }),
      binary("less_equal", &less_equal, [](double x, double y) { return double(x <= y); }),
  };
  const std::size_t plain = rows.size();
  for (std::size_t i = 0; i < plain; ++i) {
    rows.push_back(with_dtype_of(rows[i], "_of_integers", DType::kInt32, 0, 2));
    rows.push_back(with_shapes(with_dtype_of(rows[i], "_row", DType::kUint8, 0, 2), "", {{5, 3}, {3}}));
  }
  rows.push_back(with_dtype_of(binary("logical_and", &logical_and, [](double x, double y) { return x * y; }), "",
                               DType::kBool, 0, 1));
  rows.push_back(with_dtype_of(unary(
                                   "logical_not", &logical_not, [](double x) { return 1 - x; }, 0, 1),
                               "", DType::kBool, 0, 1));
  rows.push_back({.name = "select",
                  .inputs = {{.shape = {5, 3}, .dtype = DType::kBool}, {.shape = {5, 3}}, {.shape = {3}}},
                  .build = [](const Exprs& x) { return select(x[0], x[1], x[2]); },
                  .reference = elementwise([](double c, double x, double y) { return c != 0 ? x : y; }),
                  .second_gradient = true});
  rows.push_back({.name = "select_by_row",
                  .inputs = {{.shape = {5, 1}, .dtype = DType::kBool}, {.shape = {5, 3}}, {.shape = {5, 3}}},
                  .build = [](const Exprs& x) { return select(x[0], x[1], x[2]); },
                  .reference = elementwise([](double c, double x, double y) { return c != 0 ? x : y; })});
  return rows;
}

std::vector<OpCase> cast_rows() {
  const auto row = [](std::string name, DType from, DType to, double low, double high, double (*f)(double)) -> OpCase {
    return {.name = std::move(name),
            .inputs = {{.shape = {5, 3}, .dtype = from, .low = low, .high = high}},
            .build = [to](const Exprs& x) { return cast(x[0], to); },
            .reference = elementwise(f)};
  };
  const auto same = [](double x) { return x; };
  const auto truth = [](double x) { return double(x != 0); };
  const auto whole = [](double x) { return std::trunc(x); };
  return {
      row("cast_widens", DType::kFloat32, DType::kFloat64, -2, 2, same),
      row("cast_bool_to_float", DType::kBool, DType::kFloat32, 0, 1, same),
      row("cast_to_bool", DType::kInt32, DType::kBool, -1, 1, truth),
      row("cast_truncates", DType::kFloat32, DType::kInt32, -9, 9, whole),
      row("cast_integers", DType::kUint8, DType::kInt64, 0, 255, same),
      {.name = "clip",
       .inputs = {{.shape = {5, 4}, .low = -2, .high = 2}},
       .build = [](const Exprs& x) { return clip(x[0], -0.5, 1); },
       .reference = elementwise([](double x) { return std::clamp(x, -0.5, 1.0); })},
      {.name = "clip_above",
       .inputs = {{.shape = {5, 4}, .low = -2, .high = 2}},
       .build = [](const Exprs& x) { return clip(x[0], {}, 1); },
       .reference = elementwise([](double x) { return std::min(x, 1.0); })},
  };
}

SYNCLINE_OP_CASES(unary_rows)
SYNCLINE_OP_CASES(binary_rows)
SYNCLINE_OP_CASES(floor_rows)
SYNCLINE_OP_CASES(comparison_rows)
SYNCLINE_OP_CASES(cast_rows)

}  // namespace
}  // namespace syncline::testing
