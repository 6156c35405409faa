// Op cases of reductions and scans.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/graph/elementwise.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;
using Values = std::vector<double>;
using Reduction = Expr (*)(const Expr&, Axes, bool);

double total_of(const Values& v) { return std::accumulate(v.begin(), v.end(), 0.0); }
double mean_of(const Values& v) { return total_of(v) / static_cast<double>(v.size()); }
double product_of(const Values& v) { return std::accumulate(v.begin(), v.end(), 1.0, std::multiplies<>()); }
double largest_of(const Values& v) { return *std::max_element(v.begin(), v.end()); }
double smallest_of(const Values& v) { return *std::min_element(v.begin(), v.end()); }
double any_of(const Values& v) {
  return std::any_of(v.begin(), v.end(), [](double x) { return x != 0; });
}
double all_of(const Values& v) {
  return std::all_of(v.begin(), v.end(), [](double x) { return x != 0; });
}
double variance_of(const Values& v) {
  const double mean = mean_of(v);
  double sum = 0;
  for (const double x : v) sum += (x - mean) * (x - mean);
  return sum / static_cast<double>(v.size());
}
double deviation_of(const Values& v) { return std::sqrt(variance_of(v)); }
double logsumexp_of(const Values& v) {
  double sum = 0;
  for (const double x : v) sum += std::exp(x);
  return std::log(sum);
}

OpCase row(std::string name, Reduction f, double (*fold)(const Values&), Axes axes, bool keepdims, const Shape& shape) {
  return {.name = std::move(name),
          .inputs = {{.shape = shape}},
          .build = [=](const Exprs& x) { return f(x[0], axes, keepdims); },
          .reference = folding(axes.of(shape.ndim()), keepdims, fold),
          .second_gradient = true};
}

// One reduction over each kind of axes.
std::vector<OpCase> rows_of(const std::string& name, Reduction f, double (*fold)(const Values&)) {
  return {
      row(name, f, fold, {}, false, {5, 3}),
      row(name + "_kept", f, fold, {}, true, {5, 2, 3}),
      row(name + "_of_columns", f, fold, {0}, false, {5, 3}),
      row(name + "_of_rows", f, fold, {-1}, false, {5, 3}),
      row(name + "_of_rows_kept", f, fold, {1}, true, {5, 3}),
      row(name + "_of_the_middle", f, fold, {1}, false, {5, 3, 2}),
      row(name + "_of_outer_axes", f, fold, {0, 2}, false, {5, 2, 3}),
      row(name + "_of_inner_axes", f, fold, {2, 1}, true, {5, 2, 3}),
      row(name + "_of_no_axes", f, fold, std::vector<int>{}, false, {5, 3}),
      row(name + "_of_no_axes_kept", f, fold, std::vector<int>{}, true, {5, 3}),
  };
}

// Sizes at which threads divide outputs, columns or rows, and lengths that are not multiples of a vector's.
std::vector<OpCase> large_rows(const std::string& name, Reduction f, double (*fold)(const Values&)) {
  const auto large = [&](const std::string& suffix, Axes axes, Shape shape) {
    OpCase r = row(name + suffix, f, fold, std::move(axes), false, shape);
    r.large = r.inputs;
    r.gradient = r.placement = r.second_gradient = false;
    r.tolerance = 1e-4;  // sums of thousands of numbers of both signs
    return r;
  };
  return {
      large("_large_all", {}, {300, 1003}),
      large("_large_columns", {0}, {4099, 65}),
      large("_large_few_columns", {0}, {20011, 10}),
      large("_large_wide_columns", {0}, {50, 4099}),
      large("_large_rows", {1}, {700, 333}),
      large("_large_few_rows", {1}, {3, 70001}),
      large("_large_channels", {0, 1, 2}, {16, 28, 28, 32}),
      large("_large_images", {1, 2}, {16, 28, 28, 3}),
      large("_large_alternate", {0, 2}, {64, 33, 65}),
  };
}

std::vector<OpCase> reduction_rows() {
  std::vector<OpCase> rows;
  const auto append = [&](std::vector<OpCase> more) {
    rows.insert(rows.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  append(rows_of("sum", &sum, &total_of));
  append(rows_of("mean", &mean, &mean_of));
  append(rows_of("max", &max, &largest_of));
  append(rows_of("min", &min, &smallest_of));
  append(rows_of("prod", &prod, &product_of));
  append(rows_of("var", &var, &variance_of));
  append(rows_of("std", &std, &deviation_of));
  append(rows_of("logsumexp", &logsumexp, &logsumexp_of));
  append(large_rows("sum", &sum, &total_of));
  append(large_rows("max", &max, &largest_of));
  OpCase bias = row("sum_bias_gradient", &sum, &total_of, {0}, false, {5, 4});
  bias.large = {{.shape = {73728, 64}}};
  rows.push_back(bias);
  for (OpCase& r : rows)
    if (r.name.starts_with("std")) r.gradient_tolerance = 1e-5;
  for (OpCase& r : rows)
    if (r.name.starts_with("std_of_no_axes")) r.gradient = r.second_gradient = false;  // sqrt has no gradient at 0
  return rows;
}

OpCase of_integers(OpCase r, const std::string& suffix, DType dtype, double low, double high) {
  r.name += suffix;
  r.inputs[0].dtype = dtype;
  r.inputs[0].low = low;
  r.inputs[0].high = high;
  return r;
}

std::vector<OpCase> special_reduction_rows() {
  std::vector<OpCase> rows{
      of_integers(row("sum", &sum, &total_of, {0}, false, {5, 3}), "_of_integers", DType::kInt32, -9, 9),
      of_integers(row("mean", &mean, &mean_of, {1}, false, {5, 3}), "_of_integers", DType::kInt64, -9, 9),
      of_integers(row("mean", &mean, &mean_of, {}, false, {5, 3}), "_of_bool", DType::kBool, 0, 1),
      of_integers(row("max", &max, &largest_of, {0}, false, {5, 3}), "_of_integers", DType::kUint8, 0, 255),
      of_integers(row("min", &min, &smallest_of, {1}, false, {5, 3}), "_of_integers", DType::kInt16, -99, 99),
      of_integers(row("any", &any, &any_of, {1}, false, {5, 3}), "", DType::kBool, 0, 1),
      of_integers(row("any", &any, &any_of, {0}, true, {5, 3}), "_of_integers", DType::kInt32, 0, 2),
      of_integers(row("all", &all, &all_of, {1}, false, {5, 2}), "", DType::kBool, 0, 1),
      of_integers(row("all", &all, &all_of, {}, false, {5, 2}), "_of_floats", DType::kFloat32, 0.5, 1),
      row("sum_of_scalar", &sum, &total_of, {}, false, {}),
      row("sum_of_one_element", &sum, &total_of, {1}, false, {5, 1}),
  };
  for (OpCase& r : rows) r.second_gradient = false;
  rows.push_back({.name = "prod_with_zeros",
                  .inputs = {{.shape = {3, 3}, .values = {0, 2, 3, 0, 5, 0, 1, 2, 3}}},
                  .build = [](const Exprs& x) { return prod(x[0], {1}); },
                  .reference = folding({1}, false, &product_of),
                  .second_gradient = true});
  rows.push_back({.name = "logsumexp_of_large",
                  .inputs = {{.shape = {3}, .values = {1000, 1000, -1000}}},
                  .build = [](const Exprs& x) { return logsumexp(x[0]); },
                  .reference = literal({}, {1000.6931471805599})});
  rows.push_back({.name = "unbroadcast",
                  .inputs = {{.shape = {5, 4, 3}}, {.shape = {4, 1}}},
                  .build = [](const Exprs& x) { return unbroadcast(x[0], x[1]); },
                  .reference =
                      [](std::span<const Tensor> in) {
                        Tensor y = folding({0, 2}, false, &total_of)(in.first(1));
                        y.shape = {4, 1};
                        return y;
                      },
                  .second_gradient = true});
  return rows;
}

// The index of the first largest (or smallest) element along an axis.
Reference index_of_best(int axis, bool largest) {
  return folding({axis}, false, [largest](const Values& v) {
    const auto best = largest ? std::max_element(v.begin(), v.end()) : std::min_element(v.begin(), v.end());
    return static_cast<double>(best - v.begin());
  });
}

// The running sum (or product) along an axis: of the elements before each element, and of itself unless exclusive.
Reference running(int axis, ScanOptions options, bool product) {
  return [=](std::span<const Tensor> in) {
    const auto along = static_cast<std::size_t>(axis);
    return tabulate(in[0].shape, [&](const Index& index) {
      double total = product ? 1 : 0;
      for (std::int64_t i = 0; i < in[0].shape[axis]; ++i) {
        const std::int64_t own = index[along];
        const bool before = options.reverse ? i > own : i < own;
        if (!before && (options.exclusive || i != own)) continue;
        Index other = index;
        other[along] = i;
        total = product ? total * at(in[0], other) : total + at(in[0], other);
      }
      return total;
    });
  };
}

std::vector<OpCase> index_rows() {
  const auto row = [](std::string name, bool largest, int axis, InputSpec input) -> OpCase {
    return {.name = std::move(name),
            .inputs = {input},
            .build = [=](const Exprs& x) { return largest ? argmax(x[0], axis) : argmin(x[0], axis); },
            .reference = index_of_best(axis, largest),
            .large = {{.shape = {4096, 10}}}};
  };
  return {
      row("argmax", true, -1, {.shape = {5, 4}}),
      row("argmax_of_columns", true, 0, {.shape = {5, 4}}),
      row("argmax_of_the_middle", true, 1, {.shape = {5, 4, 3}}),
      row("argmax_with_ties", true, 1, {.shape = {5, 4}, .dtype = DType::kInt32, .low = 0, .high = 1}),
      row("argmin", false, -1, {.shape = {5, 4}}),
      row("argmin_of_columns", false, 0, {.shape = {5, 4}, .dtype = DType::kUint8, .low = 0, .high = 3}),
  };
}

std::vector<OpCase> scan_rows() {
  std::vector<OpCase> rows;
  for (const bool exclusive : {false, true})
    for (const bool reverse : {false, true})
      for (const bool product : {false, true}) {
        const ScanOptions options{.exclusive = exclusive, .reverse = reverse};
        const std::string name =
            std::string(product ? "cumprod" : "cumsum") + (exclusive ? "_exclusive" : "") + (reverse ? "_reverse" : "");
        const auto build = [=](int axis) {
          return [=](const Exprs& x) { return product ? cumprod(x[0], axis, options) : cumsum(x[0], axis, options); };
        };
        rows.push_back({.name = name,
                        .inputs = {{.shape = {5, 3}}},
                        .build = build(0),
                        .reference = running(0, options, product),
                        .large = {{.shape = {256, 512}}},
                        .second_gradient = true});
        rows.push_back({.name = name + "_of_the_middle",
                        .inputs = {{.shape = {3, 4, 2}}},
                        .build = build(1),
                        .reference = running(1, options, product)});
      }
  rows.push_back({.name = "cumprod_with_zeros",
                  .inputs = {{.shape = {5}, .values = {2, 0, 3, 0, 4}}},
                  .build = [](const Exprs& x) { return cumprod(x[0]); },
                  .reference = literal({5}, {2, 0, 0, 0, 0}),
                  .second_gradient = true});
  return rows;
}

SYNCLINE_OP_CASES(reduction_rows)
SYNCLINE_OP_CASES(special_reduction_rows)
SYNCLINE_OP_CASES(index_rows)
SYNCLINE_OP_CASES(scan_rows)

}  // namespace
}  // namespace syncline::testing
