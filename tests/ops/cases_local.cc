// Op cases of convolutions with separate weights for each channel (depthwise, separable) or position (local).
#include "syncline/backend/convolution.h"
#include "syncline/backend/shape.h"
#include "tests/ops/windows.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;
using Tensors = std::span<const Tensor>;

// x and w have channels last. y[..., c * multiplier + m] depends on x[..., c] and w[..., c, m].
Tensor depthwise_reference(const Windows& windows, const Tensor& x, const Tensor& w) {
  const std::int64_t multiplier = w.shape.back();
  Shape shape = windows.result(x.shape);
  shape.push_back(x.shape.back() * multiplier);
  return tabulate(shape, [&](const Index& out) {
    double sum = 0;
    windows.for_taps(x.shape, {out.begin() + 1, out.end() - 1}, [&](const Index& tap, const Index& place) {
      Index from{out[0]}, weight = tap;
      from.insert(from.end(), place.begin(), place.end());
      from.push_back(out.back() / multiplier);
      weight.push_back(out.back() / multiplier);
      weight.push_back(out.back() % multiplier);
      sum += at(x, from) * at(w, weight);
    });
    return sum;
  });
}

// y[..., k] = sum over c of x[..., c] * w[c, k]. The leading axes of w have one element.
Tensor mixed(const Tensor& x, const Tensor& w) {
  Shape shape = x.shape;
  shape[shape.ndim() - 1] = w.shape.back();
  return tabulate(shape, [&](const Index& out) {
    double sum = 0;
    for (std::int64_t c = 0; c < x.shape.back(); ++c) {
      Index from = out, weight(static_cast<std::size_t>(w.shape.ndim() - 2), 0);
      from.back() = c;
      weight.push_back(c);
      weight.push_back(out.back());
      sum += at(x, from) * at(w, weight);
    }
    return sum;
  });
}

Windows windows_of(const Shape& w, const Conv2DOptions& o) {
  return {.size = {w[0], w[1]},
          .strides = Steps(o.strides.begin(), o.strides.end()),
          .dilation_rate = Steps(o.dilation_rate.begin(), o.dilation_rate.end()),
          .padding = o.padding,
          .data_format = o.data_format};
}

// `x` has channels last, for every data_format.
OpCase depthwise_row(std::string name, const Shape& x, const Shape& w, const Conv2DOptions& o = {}) {
  const Windows windows = windows_of(w, o);
  return {.name = std::move(name),
          .inputs = {{.shape = windows.order(x)}, {.shape = w}},
          .build = [o](const Exprs& e) { return depthwise_conv2d(e[0], e[1], o); },
          .reference =
              [windows](Tensors in) {
                return windows.from_last(depthwise_reference(windows, windows.to_last(in[0]), in[1]));
              },
          .second_gradient = true};
}

// The convolution of a padded image. `x`: the image without the zeros.
OpCase padded_depthwise_row(std::string name, const Shape& x, const Shape& w, const Steps& before, const Steps& after,
                            const Conv2DOptions& o = {}) {
  const Windows windows = windows_of(w, o);
  return {.name = std::move(name),
          .inputs = {{.shape = x}, {.shape = w}},
          .build = [=](const Exprs& e) { return depthwise_conv2d(pad(e[0], before, after), e[1], o); },
          .reference =
              [=](Tensors in) {
                const Tensor image = padded(in[0], before, padded_shape(x, before, after));
                return depthwise_reference(windows, image, in[1]);
              },
          .second_gradient = true};
}

OpCase separable_row(std::string name, const Shape& x, const Shape& w, std::int64_t filters,
                     const Conv2DOptions& o = {}) {
  const Windows windows = windows_of(w, o);
  return {.name = std::move(name),
          .inputs = {{.shape = windows.order(x)}, {.shape = w}, {.shape = {1, 1, w[2] * w[3], filters}}},
          .build = [o](const Exprs& e) { return separable_conv2d(e[0], e[1], e[2], o); },
          .reference =
              [windows](Tensors in) {
                const Tensor image = windows.to_last(in[0]);
                return windows.from_last(mixed(depthwise_reference(windows, image, in[1]), in[2]));
              },
          .second_gradient = true,
          .tolerance = 5e-6,
          .gradient_tolerance = 1e-5};
}

OpCase separable_1d_row(std::string name, const Shape& x, const Shape& w, std::int64_t filters,
                        const Conv1DOptions& o = {}) {
  const Windows windows{.size = {w[0]},
                        .strides = {o.strides},
                        .dilation_rate = {o.dilation_rate},
                        .padding = o.padding,
                        .data_format = o.data_format};
  return {.name = std::move(name),
          .inputs = {{.shape = windows.order(x)}, {.shape = w}, {.shape = {1, w[1] * w[2], filters}}},
          .build = [o](const Exprs& e) { return separable_conv1d(e[0], e[1], e[2], o); },
          .reference =
              [windows](Tensors in) {
                const Tensor image = windows.to_last(in[0]);
                return windows.from_last(mixed(depthwise_reference(windows, image, in[1]), in[2]));
              },
          .second_gradient = true,
          .tolerance = 5e-6,
          .gradient_tolerance = 1e-5};
}

// w: (positions, features, filters), features in the order of x's axes.
Tensor local_reference(const Windows& windows, const Shape& positions, const Tensor& in, const Tensor& w) {
  const Tensor x = windows.to_last(in);
  const std::int64_t channels = x.shape.back(), places = Shape(windows.size).size();
  Shape shape{x.shape[0]};
  for (const std::int64_t n : positions) shape.push_back(n);
  shape.push_back(w.shape.back());
  return windows.from_last(tabulate(shape, [&](const Index& out) {
    const Index position(out.begin() + 1, out.end() - 1);
    std::int64_t number = 0, place_number = 0;
    for (int i = 0; i < positions.ndim(); ++i) number = number * positions[i] + position[static_cast<std::size_t>(i)];
    double sum = 0;
    windows.for_taps(x.shape, position, [&](const Index&, const Index& place) {
      for (std::int64_t c = 0; c < channels; ++c) {
        Index from{out[0]};
        from.insert(from.end(), place.begin(), place.end());
        from.push_back(c);
        const std::int64_t feature = windows.first() ? c * places + place_number : place_number * channels + c;
        sum += at(x, from) * at(w, {number, feature, out.back()});
      }
      ++place_number;
    });
    return sum;
  }));
}

OpCase local_row(std::string name, const Shape& x, Steps size, Steps strides, const Shape& positions,
                 std::int64_t filters, const std::string& data_format = "channels_last") {
  const Windows windows{
      .size = size, .strides = strides, .dilation_rate = Steps(size.size(), 1), .data_format = data_format};
  const Shape w{positions.size(), Shape(size).size() * x.back(), filters};
  return {.name = std::move(name),
          .inputs = {{.shape = windows.order(x)}, {.shape = w}},
          .build =
              [=](const Exprs& e) {
                const auto number = [](std::int64_t n) { return static_cast<int>(n); };
                if (size.size() == 1) return local_conv1d(e[0], e[1], number(size[0]), number(strides[0]), data_format);
                return local_conv2d(e[0], e[1], {number(size[0]), number(size[1])},
                                    {number(strides[0]), number(strides[1])},
                                    {number(positions[0]), number(positions[1])}, data_format);
              },
          .reference = [=](Tensors in) { return local_reference(windows, positions, in[0], in[1]); },
          .open_batch = false,  // the number of positions is the first dimension of w
          .second_gradient = true,
          .gradient_tolerance = 1e-5};
}

std::vector<OpCase> depthwise_rows() {
  const std::string first = "channels_first";
  std::vector<OpCase> rows{
      depthwise_row("depthwise_conv2d", {2, 5, 6, 3}, {3, 3, 3, 1}),
      depthwise_row("depthwise_conv2d_multiplier", {2, 5, 4, 3}, {3, 2, 3, 2}, {.padding = "same"}),
      depthwise_row("depthwise_conv2d_strides", {2, 7, 6, 2}, {2, 3, 2, 1}, {.strides = {2, 3}, .padding = "same"}),
      depthwise_row("depthwise_conv2d_dilated", {2, 7, 8, 2}, {3, 2, 2, 2},
                    {.strides = {1, 2}, .dilation_rate = {2, 3}}),
      padded_depthwise_row("depthwise_conv2d_padded", {2, 6, 5, 3}, {3, 3, 3, 1}, {0, 0, 1, 0}, {0, 1, 2, 0},
                           {.strides = {2, 2}}),
      depthwise_row("depthwise_conv2d_channels_first", {2, 5, 4, 3}, {2, 2, 3, 2},
                    {.padding = "same", .data_format = first}),
      separable_row("separable_conv2d", {2, 5, 6, 2}, {3, 3, 2, 1}, 4),
      separable_row("separable_conv2d_same", {2, 5, 4, 2}, {2, 3, 2, 3}, 2, {.strides = {2, 2}, .padding = "same"}),
      separable_row("separable_conv2d_channels_first", {2, 5, 5, 2}, {2, 2, 2, 2}, 3,
                    {.data_format = first, .dilation_rate = {2, 1}}),
      separable_1d_row("separable_conv1d", {2, 7, 3}, {3, 3, 1}, 2),
      separable_1d_row("separable_conv1d_same", {2, 8, 2}, {4, 2, 2}, 3, {.strides = 2, .padding = "same"}),
      separable_1d_row("separable_conv1d_channels_first", {2, 8, 2}, {3, 2, 2}, 3,
                       {.padding = "same", .data_format = first, .dilation_rate = 2}),
  };
  rows[0].large = {{.shape = {32, 28, 28, 64}}, {.shape = {3, 3, 64, 1}}};
  return rows;
}

std::vector<OpCase> local_rows() {
  const std::string first = "channels_first";
  return {
      local_row("local_conv1d", {3, 7, 2}, {3}, {1}, {5}, 4),
      local_row("local_conv1d_strides", {3, 8, 2}, {3}, {2}, {3}, 2),
      local_row("local_conv1d_channels_first", {3, 6, 2}, {2}, {2}, {3}, 3, first),
      local_row("local_conv2d", {2, 4, 5, 2}, {2, 3}, {1, 1}, {3, 3}, 3),
      local_row("local_conv2d_strides", {3, 6, 5, 2}, {2, 2}, {3, 2}, {2, 2}, 2),
      local_row("local_conv2d_channels_first", {2, 4, 4, 3}, {2, 3}, {2, 1}, {2, 2}, 2, first),
  };
}

SYNCLINE_OP_CASES(depthwise_rows)
SYNCLINE_OP_CASES(local_rows)

}  // namespace
}  // namespace syncline::testing
