// Op cases of dense convolution in one to three dimensions, and of its transpose in two and three.
#include "ops/graph/leaf.h"
#include "syncline/backend/convolution.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "tests/ops/windows.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;
using Tensors = std::span<const Tensor>;

// A convolution of images of shape x (channels last) with kernels of shape w.
struct Conv {
  Windows windows;
  Shape x, w;

  Shape y() const {
    Shape shape = windows.result(x);
    shape.push_back(w.back());
    return shape;
  }

  // Calls f(index in x, index in w, index in y) for each product in the sums of the convolution.
  template <class F>
  void for_products(F f) const {
    tabulate(y(), [&](const Index& out) {
      const Index position(out.begin() + 1, out.end() - 1);
      windows.for_taps(x, position, [&](const Index& tap, const Index& place) {
        for (std::int64_t c = 0; c < x.back(); ++c) {
          Index from{out[0]}, weight = tap;
          from.insert(from.end(), place.begin(), place.end());
          from.push_back(c);
          weight.push_back(c);
          weight.push_back(out.back());
          f(from, weight, out);
        }
      });
      return 0.0;
    });
  }
};

struct Options {
  Steps strides = {}, dilation_rate = {};
  std::string padding = "valid", data_format = "channels_last";
};

// The window sizes are those of w. Empty strides and dilation rates mean 1.
Conv problem(const Shape& x, const Shape& w, const Options& o) {
  const auto spatial = static_cast<std::size_t>(x.ndim() - 2);
  const Steps ones(spatial, 1);
  Windows windows{.size = Steps(w.begin(), w.begin() + static_cast<std::ptrdiff_t>(spatial)),
                  .strides = o.strides.empty() ? ones : o.strides,
                  .dilation_rate = o.dilation_rate.empty() ? ones : o.dilation_rate};
  windows.padding = o.padding;
  windows.data_format = o.data_format;
  return {windows, x, w};
}

template <std::size_t N>
std::array<int, N> numbers(const Steps& steps) {
  std::array<int, N> a{};
  for (std::size_t i = 0; i < N; ++i) a[i] = static_cast<int>(steps[i]);
  return a;
}

Conv2DOptions options_2d(const Windows& w) {
  return {numbers<2>(w.strides), w.padding, w.data_format, numbers<2>(w.dilation_rate)};
}
Conv3DOptions options_3d(const Windows& w) {
  return {numbers<3>(w.strides), w.padding, w.data_format, numbers<3>(w.dilation_rate)};
}

Expr convolve(const Windows& w, const Expr& x, const Expr& kernel) {
  if (w.spatial() == 1)
    return conv1d(x, kernel,
                  {.strides = static_cast<int>(w.strides[0]),
                   .padding = w.padding,
                   .data_format = w.data_format,
                   .dilation_rate = static_cast<int>(w.dilation_rate[0])});
  return w.spatial() == 2 ? conv2d(x, kernel, options_2d(w)) : conv3d(x, kernel, options_3d(w));
}

Tensor conv_reference(const Conv& c, const Tensor& x, const Tensor& w) {
  const Tensor image = c.windows.to_last(x);
  Tensor y = zeros_of(c.y());
  c.for_products([&](const Index& i, const Index& k, const Index& o) { element(y, o) += at(image, i) * at(w, k); });
  return c.windows.from_last(y);
}

// `x` has channels last, for every data_format.
OpCase conv_row(std::string name, Shape x, Shape w, const Options& o = {}, double tolerance = 2e-6) {
  const Conv c = problem(x, w, o);
  return {.name = std::move(name),
          .inputs = {{.shape = c.windows.order(x)}, {.shape = w}},
          .build = [c](const Exprs& e) { return convolve(c.windows, e[0], e[1]); },
          .reference = [c](Tensors in) { return conv_reference(c, in[0], in[1]); },
          .second_gradient = true,
          .tolerance = tolerance,
          .gradient_tolerance = 1e-5};
}

// The convolution of a padded image. `x`: the image without the zeros.
OpCase padded_row(std::string name, const Shape& x, const Shape& w, const Steps& before, const Steps& after,
                  const Options& o = {}) {
  const Conv c = problem(padded_shape(x, before, after), w, o);
  return {.name = std::move(name),
          .inputs = {{.shape = x}, {.shape = w}},
          .build = [=](const Exprs& e) { return convolve(c.windows, pad(e[0], before, after), e[1]); },
          .reference = [=](Tensors in) { return conv_reference(c, padded(in[0], before, c.x), in[1]); },
          .second_gradient = true,
          .gradient_tolerance = 1e-5};
}

// The kernel's gradient as a function of x and dy. The gradient does not depend on the kernel's values.
OpCase grad_kernel_row(std::string name, Shape x, Shape w, const Options& o) {
  const Conv c = problem(x, w, o);
  return {.name = std::move(name),
          .inputs = {{.shape = x}, {.shape = c.y()}},
          .build =
              [c](const Exprs& e) {
                const Expr kernel = constant_of(random_array(e[0].dtype(), c.w, -1, 1, 9));
                return gradients(sum(convolve(c.windows, e[0], kernel) * e[1]), {kernel})[0];
              },
          .reference =
              [c](Tensors in) {
                Tensor dw = zeros_of(c.w);
                c.for_products([&](const Index& i, const Index& k, const Index& y) {
                  element(dw, k) += at(in[0], i) * at(in[1], y);
                });
                return dw;
              },
          .second_gradient = true,
          .tolerance = 1e-5,
          .gradient_tolerance = 1e-5};
}

// `image`: the shape of the transposed convolution's result, with channels last. The operand has the shape of the
// convolution of `image`.
OpCase transposed_row(std::string name, Shape image, Shape w, const Options& o, bool open_size = false) {
  const Conv c = problem(image, w, o);
  Shape shape = c.windows.order(image);
  shape[0] = kUnknown;
  for (int axis = 1; open_size && axis < shape.ndim(); ++axis) shape[axis] = kUnknown;
  return {.name = std::move(name),
          .inputs = {{.shape = c.windows.order(c.y())}, {.shape = w}},
          .build =
              [c, shape](const Exprs& e) {
                return c.windows.spatial() == 2 ? conv2d_transpose(e[0], e[1], shape, options_2d(c.windows))
                                                : conv3d_transpose(e[0], e[1], shape, options_3d(c.windows));
              },
          .reference =
              [c](Tensors in) {
                const Tensor dy = c.windows.to_last(in[0]);
                Tensor dx = zeros_of(c.x);
                c.for_products([&](const Index& i, const Index& k, const Index& y) {
                  element(dx, i) += at(in[1], k) * at(dy, y);
                });
                return c.windows.from_last(dx);
              },
          .second_gradient = true,
          .tolerance = 1e-5,
          .gradient_tolerance = 1e-5};
}

std::vector<OpCase> conv_rows() {
  const Options same{.padding = "same"};
  const Options same_by_2{.strides = {2, 2}, .padding = "same"};
  std::vector<OpCase> rows{
      conv_row("conv2d", {2, 5, 6, 3}, {3, 3, 3, 4}),
      conv_row("conv2d_same", {2, 5, 6, 3}, {3, 2, 3, 4}, same),
      conv_row("conv2d_strides", {2, 7, 6, 2}, {3, 2, 2, 3}, {.strides = {2, 3}}),
      conv_row("conv2d_same_strides", {2, 6, 7, 2}, {3, 3, 2, 3}, same_by_2),
      conv_row("conv2d_dilated", {2, 7, 6, 2}, {3, 2, 2, 3}, {.dilation_rate = {2, 3}}),
      conv_row("conv2d_dilated_same", {1, 5, 5, 2}, {3, 3, 2, 2}, {.dilation_rate = {2, 2}, .padding = "same"}),
      conv_row("conv2d_dilated_strides", {2, 7, 8, 2}, {2, 3, 2, 3},
               {.strides = {3, 2}, .dilation_rate = {2, 2}, .padding = "same"}),
      conv_row("conv2d_channels_first", {2, 5, 6, 3}, {3, 3, 3, 2},
               {.padding = "same", .data_format = "channels_first"}),
      conv_row("conv2d_one_by_one", {3, 4, 4, 5}, {1, 1, 5, 3}),
      conv_row("conv2d_one_channel", {2, 9, 9, 1}, {3, 3, 1, 8}),
      conv_row("conv2d_wide", {1, 9, 10, 32}, {3, 3, 32, 32}, same, 5e-5),
      padded_row("conv2d_padded", {2, 5, 6, 3}, {3, 2, 3, 4}, {0, 1, 2, 0}, {0, 2, 0, 0}),
      padded_row("conv2d_padded_strides", {2, 6, 7, 2}, {3, 3, 2, 3}, {0, 0, 1, 0}, {0, 1, 1, 0}, {.strides = {2, 2}}),
      padded_row("conv2d_padded_same", {2, 5, 5, 2}, {3, 3, 2, 3}, {0, 1, 1, 0}, {0, 1, 1, 0}, same),
      padded_row("conv2d_padded_channels", {2, 5, 5, 2}, {3, 3, 4, 3}, {0, 1, 1, 1}, {0, 1, 1, 1}),
      padded_row("conv2d_padded_far", {2, 3, 3, 2}, {2, 2, 2, 3}, {0, 4, 3, 0}, {0, 3, 5, 0},
                 {.dilation_rate = {2, 1}}),
      grad_kernel_row("conv2d_grad_kernel", {3, 5, 6, 2}, {3, 2, 2, 3}, same_by_2),
      transposed_row("conv2d_transpose", {2, 6, 7, 2}, {3, 3, 2, 4}, {.strides = {2, 2}}),
      transposed_row("conv2d_transpose_same", {2, 6, 7, 3}, {3, 2, 3, 2}, same_by_2),
      transposed_row("conv2d_transpose_dilated", {2, 7, 8, 2}, {2, 3, 2, 3},
                     {.strides = {2, 1}, .dilation_rate = {2, 3}}),
      transposed_row("conv2d_transpose_channels_first", {2, 5, 5, 2}, {3, 3, 2, 3}, {.data_format = "channels_first"}),
      transposed_row("conv2d_transpose_open_size", {2, 7, 8, 2}, {3, 2, 2, 3}, {.strides = {2, 2}}, true),
      transposed_row("conv2d_transpose_open_size_same", {2, 6, 8, 2}, {3, 2, 2, 3}, same_by_2, true),
  };
  rows[0].large = {{.shape = {32, 26, 26, 32}}, {.shape = {3, 3, 32, 64}}};
  rows[10].gradient = rows[10].second_gradient = rows[10].placement = false;  // slow; the narrow cases test the same
  return rows;
}

std::vector<OpCase> conv_1d_and_3d_rows() {
  const std::string first = "channels_first";
  std::vector<OpCase> rows{
      conv_row("conv1d", {2, 9, 3}, {3, 3, 4}),
      conv_row("conv1d_same_strides", {2, 9, 3}, {4, 3, 4}, {.strides = {2}, .padding = "same"}),
      conv_row("conv1d_causal", {2, 9, 3}, {3, 3, 4}, {.dilation_rate = {2}, .padding = "causal"}),
      conv_row("conv1d_causal_strides", {2, 10, 2}, {3, 2, 8}, {.strides = {3}, .padding = "causal"}),
      conv_row("conv1d_channels_first", {3, 8, 2}, {3, 2, 3}, {.padding = "causal", .data_format = first}),
      conv_row("conv3d", {2, 4, 5, 4, 2}, {2, 3, 2, 2, 3}),
      conv_row("conv3d_same_strides", {2, 4, 5, 3, 2}, {3, 2, 3, 2, 2}, {.strides = {2, 1, 2}, .padding = "same"}),
      conv_row("conv3d_dilated_strides", {2, 5, 6, 5, 2}, {2, 3, 2, 2, 2},
               {.strides = {2, 1, 1}, .dilation_rate = {3, 2, 2}}),
      conv_row("conv3d_channels_first", {2, 3, 4, 3, 2}, {2, 2, 2, 2, 3}, {.padding = "same", .data_format = first}),
      padded_row("conv1d_padded", {2, 7, 3}, {3, 3, 4}, {0, 2, 0}, {0, 1, 0}, {.strides = {2}}),
      padded_row("conv3d_padded", {2, 3, 4, 3, 2}, {2, 3, 2, 2, 3}, {0, 1, 1, 0, 0}, {0, 0, 2, 1, 0}),
      conv_row("conv3d_one_by_one", {2, 3, 3, 2, 4}, {1, 1, 1, 4, 3}),
      grad_kernel_row("conv3d_grad_kernel", {3, 3, 4, 3, 2}, {2, 2, 3, 2, 2}, {.padding = "same"}),
      transposed_row("conv3d_transpose", {2, 5, 4, 5, 2}, {2, 2, 3, 2, 2}, {.strides = {2, 1, 2}}),
      transposed_row("conv3d_transpose_dilated", {2, 5, 4, 4, 2}, {2, 3, 2, 2, 2},
                     {.strides = {2, 1, 1}, .dilation_rate = {1, 2, 2}, .padding = "same"}),
      transposed_row("conv3d_transpose_channels_first", {2, 4, 3, 4, 2}, {2, 3, 2, 2, 3},
                     {.strides = {2, 1, 2}, .padding = "same", .data_format = first}),
  };
  rows[0].large = {{.shape = {32, 500, 64}}, {.shape = {5, 64, 64}}};
  rows[5].large = {{.shape = {4, 18, 18, 18, 16}}, {.shape = {3, 3, 3, 16, 32}}};
  return rows;
}

SYNCLINE_OP_CASES(conv_rows)
SYNCLINE_OP_CASES(conv_1d_and_3d_rows)

}  // namespace
}  // namespace syncline::testing
