// Rows of convolution and pooling.
#include <algorithm>
#include <limits>

#include "ops/convolution.h"
#include "ops/gradients.h"
#include "ops/leaf.h"
#include "ops/math.h"
#include "ops/reduce.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;
using Tensors = std::span<const Tensor>;

// One axis of a sliding window, worked out by counting: positions, and zeros before the first element.
struct Axis {
  std::int64_t positions = 0, before = 0;
};

Axis axis_of(std::int64_t in, std::int64_t size, std::int64_t stride, std::int64_t dilation, bool same) {
  const std::int64_t reach = (size - 1) * dilation + 1;
  Axis a;
  if (!same) {
    while (a.positions * stride + reach <= in) ++a.positions;
    return a;
  }
  while (a.positions * stride < in) ++a.positions;
  std::int64_t zeros = 0;
  while ((a.positions - 1) * stride + reach > in + zeros) ++zeros;
  a.before = zeros / 2;  // the odd zero goes to the end
  return a;
}

struct Conv {
  Conv2DOptions options;
  Shape x, w;  // channels last
  Axis axis(int i) const {
    const auto k = static_cast<std::size_t>(i);
    return axis_of(x[i + 1], w[i], options.strides[k], options.dilation_rate[k], options.padding == "same");
  }
  Shape y() const { return {x[0], axis(0).positions, axis(1).positions, w[3]}; }

  // Calls f(index of x, of w, of y) for each product of the sum that a convolution is.
  template <class F>
  void for_products(F f) const {
    const Axis rows = axis(0), columns = axis(1);
    tabulate(y(), [&](const Index& i) {
      tabulate({w[0], w[1], w[2]}, [&](const Index& k) {
        const std::int64_t r = i[1] * options.strides[0] + k[0] * options.dilation_rate[0] - rows.before;
        const std::int64_t c = i[2] * options.strides[1] + k[1] * options.dilation_rate[1] - columns.before;
        if (r >= 0 && r < x[1] && c >= 0 && c < x[2]) f(Index{i[0], r, c, k[2]}, Index{k[0], k[1], k[2], i[3]}, i);
        return 0.0;
      });
      return 0.0;
    });
  }
};

double& element(Tensor& x, const Index& index) {
  std::int64_t offset = 0;
  for (int axis = 0; axis < x.shape.ndim(); ++axis)
    offset = offset * x.shape[axis] + index[static_cast<std::size_t>(axis)];
  return x.values[static_cast<std::size_t>(offset)];
}

Tensor zeros_of(const Shape& shape) {
  return {shape, std::vector<double>(static_cast<std::size_t>(shape.size()), 0.0)};
}

Tensor permuted(const Tensor& x, const std::vector<int>& pattern) {
  Shape shape;
  for (const int axis : pattern) shape.push_back(x.shape[axis]);
  return tabulate(shape, [&](const Index& i) {
    Index from(i.size());
    for (std::size_t k = 0; k < i.size(); ++k) from[static_cast<std::size_t>(pattern[k])] = i[k];
    return at(x, from);
  });
}
Tensor to_back(const Tensor& x) { return permuted(x, {0, 2, 3, 1}); }
Tensor to_front(const Tensor& x) { return permuted(x, {0, 3, 1, 2}); }

Tensor conv_reference(const Conv& c, const Tensor& x, const Tensor& w) {
  Tensor y = zeros_of(c.y());
  c.for_products([&](const Index& i, const Index& k, const Index& o) { element(y, o) += at(x, i) * at(w, k); });
  return y;
}

// `x` is channels last here, whatever the options say.
OpCase conv(std::string name, Shape x, Shape w, Conv2DOptions o = {}, double tolerance = 2e-6) {
  const bool first = o.data_format == "channels_first";
  const Conv c{o, x, w};
  return {.name = std::move(name),
          .inputs = {{.shape = first ? Shape{x[0], x[3], x[1], x[2]} : x}, {.shape = w}},
          .build = [o](const Exprs& e) { return conv2d(e[0], e[1], o); },
          .reference =
              [c, first](Tensors in) {
                return first ? to_front(conv_reference(c, to_back(in[0]), in[1])) : conv_reference(c, in[0], in[1]);
              },
          .open_batch = false,  // the first dimension of a kernel is its height
          .second_gradient = true,
          .tolerance = tolerance,
          .gradient_tolerance = 1e-5};
}

// dw as a function of x and dy; w is there to be differentiated only.
OpCase conv_grad_kernel(std::string name, Shape x, Shape w, Conv2DOptions o) {
  const Conv c{o, x, w};
  return {.name = std::move(name),
          .inputs = {{.shape = x}, {.shape = c.y()}},
          .build =
              [o, w](const Exprs& e) {
                const Expr kernel = constant_of(random_array(e[0].dtype(), w, -1, 1, 9));
                return gradients(sum(conv2d(e[0], kernel, o) * e[1]), {kernel})[0];
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

// `image` is what conv2d_transpose makes, channels last; x is what conv2d would make of it.
OpCase transposed(std::string name, Shape image, Shape w, Conv2DOptions o) {
  const bool first = o.data_format == "channels_first";
  const Conv c{o, image, w};
  const auto order = [first](const Shape& s) { return first ? Shape{s[0], s[3], s[1], s[2]} : s; };
  return {.name = std::move(name),
          .inputs = {{.shape = order(c.y())}, {.shape = w}},
          .build =
              [o, shape = order(image)](const Exprs& e) {
                Shape open = shape;
                open[0] = kUnknown;
                return conv2d_transpose(e[0], e[1], open, o);
              },
          .reference =
              [c, first](Tensors in) {
                const Tensor dy = first ? to_back(in[0]) : in[0];
                Tensor dx = zeros_of(c.x);
                c.for_products([&](const Index& i, const Index& k, const Index& y) {
                  element(dx, i) += at(in[1], k) * at(dy, y);
                });
                return first ? to_front(dx) : dx;
              },
          .open_batch = false,
          .second_gradient = true,
          .tolerance = 1e-5,
          .gradient_tolerance = 1e-5};
}

std::vector<OpCase> conv_rows() {
  const Conv2DOptions same{.padding = "same"};
  const Conv2DOptions same_by_2{.strides = {2, 2}, .padding = "same"};
  std::vector<OpCase> rows{
      conv("conv2d", {2, 5, 6, 3}, {3, 3, 3, 4}),
      conv("conv2d_same", {2, 5, 6, 3}, {3, 2, 3, 4}, same),
      conv("conv2d_strides", {2, 7, 6, 2}, {3, 2, 2, 3}, {.strides = {2, 3}}),
      conv("conv2d_same_strides", {2, 6, 7, 2}, {3, 3, 2, 3}, same_by_2),
      conv("conv2d_dilated", {2, 7, 6, 2}, {3, 2, 2, 3}, {.dilation_rate = {2, 3}}),
      conv("conv2d_dilated_same", {1, 5, 5, 2}, {3, 3, 2, 2}, {.padding = "same", .dilation_rate = {2, 2}}),
      conv("conv2d_channels_first", {2, 5, 6, 3}, {3, 3, 3, 2}, {.padding = "same", .data_format = "channels_first"}),
      conv("conv2d_one_by_one", {3, 4, 4, 5}, {1, 1, 5, 3}),
      conv("conv2d_one_channel", {2, 9, 9, 1}, {3, 3, 1, 8}),
      conv("conv2d_wide", {1, 9, 10, 32}, {3, 3, 32, 32}, same, 5e-5),
      conv_grad_kernel("conv2d_grad_kernel", {3, 5, 6, 2}, {3, 2, 2, 3}, same_by_2),
      transposed("conv2d_transpose", {2, 6, 7, 2}, {3, 3, 2, 4}, {.strides = {2, 2}}),
      transposed("conv2d_transpose_same", {2, 6, 7, 3}, {3, 2, 3, 2}, same_by_2),
      transposed("conv2d_transpose_channels_first", {2, 5, 5, 2}, {3, 3, 2, 3}, {.data_format = "channels_first"}),
  };
  rows[0].large = {{.shape = {32, 26, 26, 32}}, {.shape = {3, 3, 32, 64}}};
  rows[9].gradient = rows[9].second_gradient = rows[9].placement = false;  // slow; the narrow rows say as much

  const Shape w{3, 3, 2, 3};
  OpCase open = conv("conv2d_of_open_batch", {5, 5, 6, 2}, w, same);
  open.inputs.pop_back();
  open.open_batch = true;
  open.build = [same, w](const Exprs& e) {
    return conv2d(e[0], constant_of(random_array(DType::kFloat32, w, -1, 1, 9).cast(e[0].dtype())), same);
  };
  open.reference = [c = Conv{same, {5, 5, 6, 2}, w}](Tensors in) {
    return conv_reference(c, in[0], tensor_of(random_array(DType::kFloat32, c.w, -1, 1, 9)));
  };
  rows.push_back(open);
  return rows;
}

OpCase pool(std::string name, Shape x, std::array<int, 2> size, Pool2DOptions o) {
  const bool first = o.data_format == "channels_first", max = o.pool_mode == "max";
  const bool same = o.padding == "same";
  const Axis rows = axis_of(x[1], size[0], o.strides[0], 1, same),
             columns = axis_of(x[2], size[1], o.strides[1], 1, same);
  const auto pooled = [=](const Tensor& image) {
    return tabulate({x[0], rows.positions, columns.positions, x[3]}, [&](const Index& i) {
      double top = -std::numeric_limits<double>::infinity(), sum = 0;
      int cells = 0;
      for (std::int64_t a = 0; a < size[0]; ++a)
        for (std::int64_t b = 0; b < size[1]; ++b) {
          const std::int64_t r = i[1] * o.strides[0] + a - rows.before, c = i[2] * o.strides[1] + b - columns.before;
          if (r < 0 || r >= x[1] || c < 0 || c >= x[2]) continue;
          const double v = at(image, {i[0], r, c, i[3]});
          top = std::max(top, v), sum += v, ++cells;
        }
      return max ? top : sum / cells;
    });
  };
  return {.name = std::move(name),
          .inputs = {{.shape = first ? Shape{x[0], x[3], x[1], x[2]} : x}},
          .build = [size, o](const Exprs& e) { return pool2d(e[0], size, o); },
          .reference = [=](Tensors in) { return first ? to_front(pooled(to_back(in[0]))) : pooled(in[0]); },
          .second_gradient = true};
}

std::vector<OpCase> pool_rows() {
  std::vector<OpCase> rows;
  for (const std::string mode : {"max", "avg"}) {
    const std::string name = mode == "max" ? "max_pool2d" : "average_pool2d";
    rows.push_back(pool(name, {5, 4, 6, 3}, {2, 2}, {.strides = {2, 2}, .pool_mode = mode}));
    rows.back().large = {{.shape = {128, 24, 24, 64}}};
    rows.push_back(pool(name + "_overlapping", {2, 5, 6, 2}, {3, 2}, {.pool_mode = mode}));
    rows.push_back(
        pool(name + "_same", {2, 5, 7, 2}, {3, 2}, {.strides = {2, 2}, .padding = "same", .pool_mode = mode}));
    rows.push_back(pool(name + "_channels_first", {2, 5, 4, 3}, {2, 2},
                        {.strides = {2, 2}, .padding = "same", .data_format = "channels_first", .pool_mode = mode}));
  }
  // Its gradient in turn needs the places of the maxima.
  rows.push_back({.name = "max_pool2d_grad",
                  .inputs = {{.shape = {3, 4, 4, 2}}, {.shape = {3, 2, 2, 2}}},
                  .build =
                      [](const Exprs& e) {
                        const Expr y = pool2d(e[0], {2, 2}, {.strides = {2, 2}});
                        return gradients(sum(y * e[1]), {e[0]})[0];
                      },
                  .reference =
                      [](Tensors in) {
                        return tabulate(in[0].shape, [&](const Index& i) {
                          double top = -2;
                          tabulate({2, 2}, [&](const Index& k) {
                            top = std::max(top, at(in[0], {i[0], i[1] / 2 * 2 + k[0], i[2] / 2 * 2 + k[1], i[3]}));
                            return 0.0;
                          });
                          return at(in[0], i) == top ? at(in[1], {i[0], i[1] / 2, i[2] / 2, i[3]}) : 0.0;
                        });
                      },
                  .second_gradient = true});
  // Among equals the first cell counts.
  rows.push_back({.name = "max_pool2d_grad_of_ties",
                  .inputs = {{.shape = {1, 2, 4, 1}, .values = {1, 1, 2, 3, 1, 1, 3, 3}}},
                  .build =
                      [](const Exprs& e) {
                        return gradients(sum(pool2d(e[0], {2, 2}, {.strides = {2, 2}})), {e[0]})[0];
                      },
                  .reference = literal({1, 2, 4, 1}, {1, 0, 0, 1, 0, 0, 0, 0}),
                  .gradient = false});
  return rows;
}

SYNCLINE_OP_CASES(conv_rows)
SYNCLINE_OP_CASES(pool_rows)

}  // namespace
}  // namespace syncline::testing
