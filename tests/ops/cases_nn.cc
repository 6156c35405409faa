// Op cases of activations, losses, gather_along_axis and in_top_k.
#include <algorithm>
#include <cmath>
#include <limits>

#include "syncline/backend/core.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;
using Tensors = std::span<const Tensor>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kFuzz = 1e-7;

// The elements of x along an axis, at an index.
std::vector<double> lane(const Tensor& x, Index index, int axis) {
  std::vector<double> elements;
  for (std::int64_t i = 0; i < x.shape[axis]; ++i) {
    index[static_cast<std::size_t>(axis)] = i;
    elements.push_back(at(x, index));
  }
  return elements;
}

double total(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v;
  return sum;
}

double log_of_sum_of_exp(const std::vector<double>& x) {
  const double top = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const double v : x) sum += std::exp(v - top);
  return top + std::log(sum);
}

// One number per slice: f(slice of x along the axis, index of the slice with 0 at the axis).
template <class F>
Tensor by_lane(const Tensor& x, int axis, F f) {
  Shape kept = x.shape;
  kept.erase(axis);
  return tabulate(kept, [&](const Index& i) {
    Index full = i;
    full.insert(full.begin() + axis, 0);
    return f(lane(x, full, axis), full);
  });
}

OpCase activation(std::string name, Expr (*f)(const Expr&), double (*reference)(double)) {
  return {.name = std::move(name),
          .inputs = {{.shape = {5, 3}, .low = -4, .high = 4}},
          .build = [f](const Exprs& x) { return f(x[0]); },
          .reference = elementwise(reference),
          .large = {{.shape = {512, 1024}, .low = -4, .high = 4}},
          .second_gradient = true};
}

std::vector<OpCase> activation_rows() {
  const auto relu_of = [](const Expr& x) { return relu(x); };
  const auto elu_of = [](const Expr& x) { return elu(x); };
  std::vector<OpCase> rows{
      activation("relu", relu_of, [](double x) { return std::max(x, 0.0); }),
      activation(
          "relu_leaky", [](const Expr& x) { return relu(x, {.alpha = 0.3}); },
          [](double x) { return x > 0 ? x : 0.3 * x; }),
      activation(
          "relu_six", [](const Expr& x) { return relu(x, {.max_value = 2.5}); },
          [](double x) { return std::clamp(x, 0.0, 2.5); }),
      activation(
          "relu_all", [](const Expr& x) { return relu(x, {.alpha = 0.2, .max_value = 3, .threshold = 1}); },
          [](double x) { return x >= 3   ? 3
                                : x >= 1 ? x
                                         : 0.2 * (x - 1); }),
      activation(
          "relu_from_one", [](const Expr& x) { return relu(x, {.threshold = 1}); },
          [](double x) { return x >= 1 ? x : 0; }),
      activation("elu", elu_of, [](double x) { return x > 0 ? x : std::expm1(x); }),
      activation(
          "elu_scaled", [](const Expr& x) { return elu(x, -0.7); },
          [](double x) { return x > 0 ? x : -0.7 * std::expm1(x); }),
      activation("softsign", &softsign, [](double x) { return x / (1 + std::abs(x)); }),
      activation("hard_sigmoid", &hard_sigmoid, [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); }),
  };
  OpCase integers = activation("relu_of_integers", relu_of, [](double x) { return std::max(x, 0.0); });
  integers.inputs[0].dtype = DType::kInt32;
  integers.large.clear();
  rows.push_back(integers);
  return rows;
}

// Values and gradients at infinities, NaN and thresholds.
std::vector<OpCase> activation_edge_rows() {
  const auto edges = [](std::string name, Expr (*f)(const Expr&), std::vector<double> in,
                        std::vector<double> out) -> OpCase {
    const Shape shape{static_cast<std::int64_t>(in.size())};
    return {.name = std::move(name),
            .inputs = {{.shape = shape, .values = std::move(in)}},
            .build = [f](const Exprs& x) { return f(x[0]); },
            .reference = literal(shape, std::move(out)),
            .gradient = false,
            .placement = false};
  };
  const auto relu_of = [](const Expr& x) { return relu(x); };
  const auto relu_from_one = [](const Expr& x) { return relu(x, {.threshold = 1}); };
  const auto relu_up_to = [](const Expr& x) { return relu(x, {.max_value = 3, .threshold = 1}); };
  const auto relu_leaky = [](const Expr& x) { return relu(x, {.alpha = 0.3}); };
  const auto relu_leaky_gradient = [](const Expr& x) { return gradients(relu(x, {.alpha = 0.3}), {&x, 1})[0]; };
  const auto relu_from_tensor_gradient = [](const Expr& x) {
    return gradients(relu(x, ReluTensors{.threshold = scalar_like(1, x)}), {&x, 1})[0];
  };
  const auto relu_by_tensor_gradient = [](const Expr& x) {
    return gradients(relu(x, ReluTensors{.alpha = scalar_like(0.3, x)}), {&x, 1})[0];
  };
  const auto relu_slope_gradient = [](const Expr& x) {
    const Expr alpha = fill_like(x, 0.3);
    return gradients(relu(x, ReluTensors{.alpha = alpha}), {&alpha, 1})[0];
  };
  const auto elu_of = [](const Expr& x) { return elu(x); };
  return {
      edges("relu_at_edges", relu_of, {-kInfinity, kInfinity, kNaN, 0}, {0, kInfinity, kNaN, 0}),
      edges("relu_from_one_at_edges", relu_from_one, {-kInfinity, kInfinity, kNaN, 1}, {0, kInfinity, kNaN, 1}),
      edges("relu_up_to_at_edges", relu_up_to, {-kInfinity, kInfinity, kNaN, 1}, {0, 3, kNaN, 1}),
      edges("relu_leaky_at_edges", relu_leaky, {-kInfinity, kInfinity, kNaN, 0}, {-kInfinity, kInfinity, kNaN, 0}),
      edges("relu_leaky_gradient_at_edges", relu_leaky_gradient, {-1, 0, 1}, {0.3, 0.3, 1}),
      edges("relu_by_tensor_gradient_at_edges", relu_by_tensor_gradient, {-1, 0, 1, kInfinity, kNaN},
            {0.3, 0.3, 1, 1, 0}),
      edges("relu_slope_gradient_at_edges", relu_slope_gradient, {-1, 0, 1, kInfinity}, {-1, 0, 0, 0}),
      edges("relu_from_tensor_gradient_at_edges", relu_from_tensor_gradient, {kNaN, -kInfinity, 1, 2}, {0, 0, 1, 1}),
      edges("elu_at_edges", elu_of, {-kInfinity, kInfinity, kNaN, -1e-6, 0}, {-1, kInfinity, kNaN, -9.999995e-7, 0}),
  };
}

std::vector<OpCase> softmax_rows() {
  const auto row = [](std::string name, Shape shape, int axis, double range, Shape large = {}) -> OpCase {
    const int positive = axis < 0 ? axis + shape.ndim() : axis;
    OpCase c{.name = std::move(name),
             .inputs = {{.shape = shape, .low = -range, .high = range}},
             .build = [axis](const Exprs& x) { return softmax(x[0], axis); },
             .reference =
                 [positive](Tensors in) {
                   return tabulate(in[0].shape, [&](const Index& i) {
                     return std::exp(at(in[0], i) - log_of_sum_of_exp(lane(in[0], i, positive)));
                   });
                 },
             .second_gradient = true};
    if (large.ndim() > 0) c.large = {{.shape = large, .low = -range, .high = range}};
    return c;
  };
  std::vector<OpCase> rows{
      row("softmax", {6, 10}, -1, 3, {1200, 1000}), row("softmax_axis_0", {5, 4}, 0, 3, {1000, 1200}),
      row("softmax_axis_1", {4, 3, 19}, 1, 3),      row("softmax_long", {3, 67}, -1, 5),
      row("softmax_of_large", {4, 5}, -1, 2000),    row("softmax_one_class", {4, 1}, -1, 3),
  };
  rows[4].gradient = rows[4].second_gradient = false;  // nearly all results are 0 or 1
  rows.push_back({.name = "softmax_at_edges",
                  .inputs = {{.shape = {4, 2}, .values = {-kInfinity, 0, kNaN, 1, -kInfinity, -kInfinity, 1e30, 1e30}}},
                  .build = [](const Exprs& x) { return softmax(x[0]); },
                  .reference = literal({4, 2}, {0, 1, kNaN, kNaN, kNaN, kNaN, 0.5, 0.5}),
                  .gradient = false,
                  .placement = false});
  return rows;
}

OpCase categorical(std::string name, Shape shape, CrossentropyOptions o) {
  const int axis = o.axis < 0 ? o.axis + shape.ndim() : o.axis;
  return {
      .name = std::move(name),
      .inputs = {{.shape = shape, .low = 0, .high = 1}, {.shape = shape, .low = o.from_logits ? -5.0 : 0.1, .high = 2}},
      .build = [o](const Exprs& x) { return categorical_crossentropy(x[0], x[1], o); },
      .reference =
          [o, axis](Tensors in) {
            return by_lane(in[1], axis, [&](const std::vector<double>& output, const Index& i) {
              const std::vector<double> target = lane(in[0], i, axis);
              double loss = 0;
              for (std::size_t c = 0; c < output.size(); ++c) {
                const double p = o.from_logits ? std::exp(output[c] - log_of_sum_of_exp(output))
                                               : std::clamp(output[c] / total(output), kFuzz, 1 - kFuzz);
                loss -= target[c] * std::log(p);
              }
              return loss;
            });
          },
      .second_gradient = true};
}

OpCase sparse(std::string name, InputSpec target, Shape shape, CrossentropyOptions o) {
  const int axis = o.axis < 0 ? o.axis + shape.ndim() : o.axis;
  target.high = static_cast<double>(shape[axis]) - (target.dtype == DType::kFloat32 ? 0.01 : 1);
  target.low = 0;
  const bool kept = target.shape.ndim() == shape.ndim();
  return {.name = std::move(name),
          .inputs = {target, {.shape = shape, .low = o.from_logits ? -5.0 : 0.1, .high = o.from_logits ? 5.0 : 0.9}},
          .build = [o](const Exprs& x) { return sparse_categorical_crossentropy(x[0], x[1], o); },
          .reference =
              [o, axis, kept](Tensors in) {
                return by_lane(in[1], axis, [&](std::vector<double> output, const Index& full) {
                  Index i = full;
                  if (!kept) i.erase(i.begin() + axis);
                  const auto label = static_cast<std::size_t>(at(in[0], i));
                  if (o.from_logits) return log_of_sum_of_exp(output) - output[label];
                  for (double& p : output) p = std::clamp(p, kFuzz, 1 - kFuzz);
                  return std::log(total(output)) - std::log(output[label]);
                });
              },
          .second_gradient = true};
}

std::vector<OpCase> crossentropy_rows() {
  const auto binary = [](std::string name, bool from_logits) -> OpCase {
    return {.name = std::move(name),
            .inputs = {{.shape = {5, 3}, .low = 0, .high = 1},
                       {.shape = {5, 3}, .low = from_logits ? -4.0 : 0.1, .high = from_logits ? 4.0 : 0.9}},
            .build =
                [from_logits](const Exprs& x) { return binary_crossentropy(x[0], x[1], {.from_logits = from_logits}); },
            .reference = from_logits ? elementwise([](double z, double x) {
              return z * std::log1p(std::exp(-x)) + (1 - z) * std::log1p(std::exp(x));
            })
                                     : elementwise([](double z, double p) {
                                         return -z * std::log(p + kFuzz) - (1 - z) * std::log(1 - p + kFuzz);
                                       }),
            .second_gradient = true};
  };
  const InputSpec labels{.shape = {5}, .dtype = DType::kInt64};
  std::vector<OpCase> rows{
      categorical("categorical_crossentropy", {5, 4}, {}),
      categorical("categorical_crossentropy_axis_1", {3, 4, 2}, {.axis = 1}),
      categorical("categorical_crossentropy_of_logits", {5, 4}, {.from_logits = true}),
      categorical("categorical_crossentropy_of_logits_axis_1", {3, 4, 2}, {.from_logits = true, .axis = 1}),
      sparse("sparse_categorical_crossentropy", labels, {5, 4}, {}),
      sparse("sparse_categorical_crossentropy_of_column", {.shape = {5, 1}, .dtype = DType::kInt32}, {5, 4}, {}),
      sparse("sparse_categorical_crossentropy_of_floats", {.shape = {5}, .dtype = DType::kFloat32}, {5, 4}, {}),
      sparse("sparse_categorical_crossentropy_of_steps", {.shape = {4, 3, 1}, .dtype = DType::kInt64}, {4, 3, 5}, {}),
      sparse("sparse_categorical_crossentropy_axis_1", {.shape = {4, 3}, .dtype = DType::kInt64}, {4, 5, 3},
             {.axis = 1}),
      sparse("sparse_categorical_crossentropy_of_logits", labels, {5, 4}, {.from_logits = true}),
      binary("binary_crossentropy", false),
      binary("binary_crossentropy_of_logits", true),
  };
  // Probabilities are clipped to [1e-7, 1 - 1e-7]. The float32 nearest to 1 - 1e-7 is 1 - 2^-23.
  rows.push_back({.name = "categorical_crossentropy_at_edges",
                  .inputs = {{.shape = {2, 2}, .values = {1, 0, 0, 1}}, {.shape = {2, 2}, .values = {0, 3, 0, 3}}},
                  .build = [](const Exprs& x) { return categorical_crossentropy(x[0], x[1]); },
                  .reference = literal({2}, {-std::log(kFuzz), -std::log(1 - kFuzz)}),
                  .gradient = false,
                  .half = false});  // float16 rounds 1e-7 to 1.2e-7
  rows.push_back(
      {.name = "sparse_categorical_crossentropy_of_huge_logits",
       .inputs = {{.shape = {2}, .dtype = DType::kInt64, .values = {0, 1}},
                  {.shape = {2, 2}, .values = {1000, -1000, 1000, -1000}}},
       .build = [](const Exprs& x) { return sparse_categorical_crossentropy(x[0], x[1], {.from_logits = true}); },
       .reference = literal({2}, {0, 2000}),
       .gradient = false});
  return rows;
}

std::vector<OpCase> gather_along_axis_rows() {
  const auto row = [](std::string name, InputSpec x, Shape index_shape, int axis, DType index_dtype) -> OpCase {
    const bool kept = index_shape.ndim() == x.shape.ndim();
    const auto top = static_cast<double>(x.shape[axis] - 1);
    return {.name = std::move(name),
            .inputs = {x, {.shape = index_shape, .dtype = index_dtype, .low = 0, .high = top}},
            .build = [axis](const Exprs& e) { return gather_along_axis(e[0], e[1], axis); },
            .reference =
                [axis, kept](Tensors in) {
                  return by_lane(in[0], axis, [&](const std::vector<double>& elements, const Index& full) {
                    Index i = full;
                    if (!kept) i.erase(i.begin() + axis);
                    return elements[static_cast<std::size_t>(at(in[1], i))];
                  });
                },
            .second_gradient = true};
  };
  return {
      row("gather_across_batch", {.shape = {5, 3}}, {3}, 0, DType::kInt64),
      row("gather_along_axis", {.shape = {5, 4}}, {5}, 1, DType::kInt64),
      row("gather_along_axis_1", {.shape = {4, 3, 2}}, {4, 2}, 1, DType::kInt32),
      row("gather_kept_axis", {.shape = {4, 3, 2}}, {4, 1, 2}, 1, DType::kInt64),
      row("gather_of_integers", {.shape = {5, 4}, .dtype = DType::kInt32, .low = -9, .high = 9}, {5}, 1, DType::kInt64),
      {.name = "in_top_k",
       .inputs = {{.shape = {7, 5}}, {.shape = {7}, .dtype = DType::kInt64, .low = -1, .high = 5}},
       .build = [](const Exprs& x) { return in_top_k(x[0], x[1], 2); },
       .reference =
           [](Tensors in) {
             return by_lane(in[0], 1, [&](const std::vector<double>& row, const Index& i) {
               const double target = in[1].values[static_cast<std::size_t>(i[0])];
               if (target < 0 || target > 4) return 0.0;
               const double own = row[static_cast<std::size_t>(target)];
               return double(std::count_if(row.begin(), row.end(), [&](double v) { return v > own; }) < 2);
             });
           }},
      {.name = "in_top_k_at_edges",
       .inputs = {{.shape = {3, 3}, .values = {1, 1, 1, 3, 2, kInfinity, 0, kNaN, 1}},
                  {.shape = {3}, .dtype = DType::kInt32, .values = {2, 0, 2}}},
       .build = [](const Exprs& x) { return in_top_k(x[0], x[1], 1); },
       .reference = literal({3}, {1, 0, 0}),
       .gradient = false},
  };
}

SYNCLINE_OP_CASES(activation_rows)
SYNCLINE_OP_CASES(activation_edge_rows)
SYNCLINE_OP_CASES(softmax_rows)
SYNCLINE_OP_CASES(crossentropy_rows)
SYNCLINE_OP_CASES(gather_along_axis_rows)

}  // namespace
}  // namespace syncline::testing
