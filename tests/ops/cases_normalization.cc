// Op cases of normalization and bias_add.
#include <algorithm>
#include <cmath>
#include <limits>

#include "syncline/backend/convolution.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;
constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
using Tensors = std::span<const Tensor>;

double mean_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v;
  return sum / static_cast<double>(x.size());
}

double variance_of(const std::vector<double>& x) {
  const double mean = mean_of(x);
  double sum = 0;
  for (const double v : x) sum += (v - mean) * (v - mean);
  return sum / static_cast<double>(x.size());
}

OpCase l2(std::string name, const Axes& axes) {
  const auto length2 = [](const std::vector<double>& x) {
    double sum = 0;
    for (const double v : x) sum += v * v;
    return std::max(sum, 1e-12);
  };
  return {.name = std::move(name),
          .inputs = {{.shape = {5, 3}, .low = 0.2, .high = 1}},
          .build = [axes](const Exprs& x) { return l2_normalize(x[0], axes); },
          .reference =
              [axes, length2](Tensors in) {
                const Tensor squares = folding(axes.of(2), true, length2)(in);
                return tabulate(in[0].shape, [&](const Index& i) { return at(in[0], i) / std::sqrt(at(squares, i)); });
              },
          .second_gradient = true};
}

// The element of a vector at the index's position along the axis.
double along(const Tensor& v, const Index& i, int axis) {
  return v.values[static_cast<std::size_t>(i[static_cast<std::size_t>(axis)])];
}

OpCase given_statistics(std::string name, Shape shape, int axis, Shape parameters = {}) {
  const int positive = axis < 0 ? axis + shape.ndim() : axis;
  if (parameters.ndim() == 0) parameters = Shape{shape[positive]};
  return {.name = std::move(name),
          .inputs = {{.shape = shape, .low = -2, .high = 2},
                     {.shape = parameters},
                     {.shape = parameters, .low = 0.5, .high = 2},
                     {.shape = parameters},
                     {.shape = parameters}},
          .build = [axis](const Exprs& x) { return batch_normalization(x[0], x[1], x[2], x[3], x[4], axis, 0.01); },
          .reference =
              [positive](Tensors in) {
                return tabulate(in[0].shape, [&](const Index& i) {
                  const auto p = [&](std::size_t k) { return along(in[k], i, positive); };
                  return (at(in[0], i) - p(1)) / std::sqrt(p(2) + 0.01) * p(4) + p(3);
                });
              },
          .open_batch = false};  // the first dimension of the parameters is the number of channels
}

// A statistic over `axes` of x, which the result keeps with one element.
Tensor statistic(const Tensor& x, const std::vector<int>& axes, double (*f)(const std::vector<double>&)) {
  return folding(axes, true, f)(std::span<const Tensor>(&x, 1));
}

std::vector<OpCase> batch_rows() {
  const auto row = [](std::string name, Shape shape, std::vector<int> axes, int channel, int output) -> OpCase {
    const Shape vector{shape[channel]};
    OpCase c{.name = std::move(name),
             .inputs = {{.shape = shape, .low = -2, .high = 2}, {.shape = vector}, {.shape = vector}},
             .build =
                 [axes, output](const Exprs& x) {
                   const NormalizedBatch y = normalize_batch_in_training(x[0], x[1], x[2], axes);
                   return output == 0 ? y.normalized : output == 1 ? y.mean : y.variance;
                 },
             .open_batch = false};
    if (output == 0) {
      c.second_gradient = true;
      c.reference = [axes, channel](Tensors in) {
        const Tensor mean = statistic(in[0], axes, &mean_of), variance = statistic(in[0], axes, &variance_of);
        return tabulate(in[0].shape, [&](const Index& i) {
          const double normalized = (at(in[0], i) - at(mean, i)) / std::sqrt(at(variance, i) + 1e-3);
          return normalized * along(in[1], i, channel) + along(in[2], i, channel);
        });
      };
    } else {
      c.reference = folding(axes, false, output == 1 ? &mean_of : &variance_of);
    }
    return c;
  };
  OpCase plain{.name = "normalize_batch_without_parameters",
               .inputs = {{.shape = {6, 3}, .low = 8, .high = 12}},
               .build = [](const Exprs& x) { return normalize_batch_in_training(x[0], {}, {}, {0}, 0.1).normalized; },
               .reference =
                   [](Tensors in) {
                     const Tensor mean = statistic(in[0], {0}, &mean_of),
                                  variance = statistic(in[0], {0}, &variance_of);
                     return tabulate(in[0].shape, [&](const Index& i) {
                       return (at(in[0], i) - at(mean, i)) / std::sqrt(at(variance, i) + 0.1);
                     });
                   },
               .tolerance = 1e-5};  // subtracting 10 from numbers near 10 cancels digits of float32
  return {
      row("normalize_batch", {6, 3}, {0}, 1, 0),
      row("normalize_batch_mean", {6, 3}, {0}, 1, 1),
      row("normalize_batch_variance", {6, 3}, {0}, 1, 2),
      row("normalize_batch_of_images", {3, 2, 4, 2}, {0, 1, 2}, 3, 0),
      row("normalize_batch_channels_first", {3, 2, 4, 2}, {0, 2, 3}, 1, 0),
      row("normalize_batch_variance_channels_first", {3, 2, 4, 2}, {0, -2, -1}, 1, 2),
      plain,
  };
}

OpCase bias(std::string name, Shape x, Shape b, std::string data_format, std::vector<int> place) {
  return {.name = std::move(name),
          .inputs = {{.shape = std::move(x)}, {.shape = std::move(b)}},
          .build = [data_format](const Exprs& e) { return bias_add(e[0], e[1], data_format); },
          .reference =
              [place](Tensors in) {
                return tabulate(in[0].shape, [&](const Index& i) {
                  Index j;  // place[k]: the axis of x that axis k of the bias follows
                  for (const int axis : place) j.push_back(i[static_cast<std::size_t>(axis)]);
                  return at(in[0], i) + at(in[1], j);
                });
              },
          .open_batch = false};
}

std::vector<OpCase> normalization_rows() {
  std::vector<OpCase> rows{
      l2("l2_normalize", {1}),
      l2("l2_normalize_all", {}),
      l2("l2_normalize_over_no_axes", std::vector<int>{}),
      given_statistics("batch_normalization", {5, 3}, -1),
      given_statistics("batch_normalization_of_images", {3, 2, 4, 2}, 3),
      given_statistics("batch_normalization_channels_first", {3, 2, 4, 2}, 1),
      given_statistics("batch_normalization_broadcast", {3, 2, 4, 2}, 1, {1, 2, 1, 1}),
      bias("bias_add", {5, 3}, {3}, "channels_last", {1}),
      bias("bias_add_to_images", {3, 2, 4, 2}, {2}, "channels_last", {3}),
      bias("bias_add_channels_first", {3, 2, 4, 5}, {2}, "channels_first", {1}),
      bias("bias_add_to_steps_channels_first", {3, 2, 4}, {2}, "channels_first", {1}),
      bias("bias_add_each_place", {3, 2, 4, 5}, {2, 4, 5}, "channels_last", {1, 2, 3}),
      bias("bias_add_to_volumes", {2, 2, 3, 2, 3}, {3}, "channels_last", {4}),
  };
  // The variance plus epsilon (1) is 0, -1 and 4.
  rows.push_back({.name = "batch_normalization_by_a_negative_variance",
                  .inputs = {{.shape = {2, 3}, .values = {1, 1, 2, 3, 3, 4}}, {.shape = {3}, .values = {-1, -2, 3}}},
                  .build =
                      [](const Exprs& x) {
                        const Expr zero = zeros_like(x[1]);
                        return batch_normalization(x[0], zero, x[1], zero, zero + 1.0, -1, 1);
                      },
                  .reference = literal({2, 3}, {kInfinity, kNaN, 1, kInfinity, kNaN, 2}),
                  .open_batch = false,
                  .gradient = false,
                  .placement = false});  // partial terms of -1 do not sum to exactly -1
  // Keras reshapes the bias here; it does not transpose it.
  rows.push_back({.name = "bias_add_each_place_channels_first",
                  .inputs = {{.shape = {1, 2, 1, 3}, .values = {0, 0, 0, 0, 0, 0}},
                             {.shape = {1, 3, 2}, .values = {1, 2, 3, 4, 5, 6}}},
                  .build = [](const Exprs& x) { return bias_add(x[0], x[1], "channels_first"); },
                  .reference = literal({1, 2, 1, 3}, {1, 2, 3, 4, 5, 6}),
                  .open_batch = false});
  return rows;
}

SYNCLINE_OP_CASES(batch_rows)
SYNCLINE_OP_CASES(normalization_rows)

}  // namespace
}  // namespace syncline::testing
