// Op cases of pooling.
#include <algorithm>
#include <limits>

#include "syncline/backend/convolution.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "tests/ops/windows.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;
using Tensors = std::span<const Tensor>;

Tensor pooled(const Windows& windows, bool max, const Tensor& x) {
  const Tensor image = windows.to_last(x);
  Shape shape = windows.result(image.shape);
  shape.push_back(image.shape.back());
  return windows.from_last(tabulate(shape, [&](const Index& i) {
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    int cells = 0;
    windows.for_taps(image.shape, {i.begin() + 1, i.end() - 1}, [&](const Index&, const Index& place) {
      Index from{i[0]};
      from.insert(from.end(), place.begin(), place.end());
      from.push_back(i.back());
      const double v = at(image, from);
      top = std::max(top, v), sum += v, ++cells;
    });
    return max ? top : sum / cells;
  }));
}

// `x` has channels last, for every data_format.
template <std::size_t N, class PoolOptions, class Pool>
OpCase pool_row(std::string name, const Shape& x, const std::array<int, N>& size, const PoolOptions& o, Pool pool) {
  const Windows windows{.size = Steps(size.begin(), size.end()),
                        .strides = Steps(o.strides.begin(), o.strides.end()),
                        .dilation_rate = Steps(N, 1),
                        .padding = o.padding,
                        .data_format = o.data_format};
  return {.name = std::move(name),
          .inputs = {{.shape = windows.order(x)}},
          .build = [size, o, pool](const Exprs& e) { return pool(e[0], size, o); },
          .reference = [windows, o](Tensors in) { return pooled(windows, o.pool_mode == "max", in[0]); },
          .second_gradient = true};
}
OpCase pool2(std::string name, const Shape& x, std::array<int, 2> size, const Pool2DOptions& o) {
  return pool_row(std::move(name), x, size, o, pool2d);
}
OpCase pool3(std::string name, const Shape& x, std::array<int, 3> size, const Pool3DOptions& o) {
  return pool_row(std::move(name), x, size, o, pool3d);
}

std::vector<OpCase> pool_rows() {
  std::vector<OpCase> rows;
  for (const std::string mode : {"max", "avg"}) {
    const std::string name = mode == "max" ? "max_pool2d" : "average_pool2d";
    rows.push_back(pool2(name, {5, 4, 6, 3}, {2, 2}, {.strides = {2, 2}, .pool_mode = mode}));
    rows.back().large = {{.shape = {128, 24, 24, 64}}};
    rows.push_back(pool2(name + "_overlapping", {2, 5, 6, 2}, {3, 2}, {.pool_mode = mode}));
    rows.push_back(
        pool2(name + "_same", {2, 5, 7, 2}, {3, 2}, {.strides = {2, 2}, .padding = "same", .pool_mode = mode}));
    rows.push_back(pool2(name + "_channels_first", {2, 5, 4, 3}, {2, 2},
                         {.strides = {2, 2}, .padding = "same", .data_format = "channels_first", .pool_mode = mode}));
  }
  for (const std::string mode : {"max", "avg"}) {
    const std::string name = mode == "max" ? "max_pool3d" : "average_pool3d";
    rows.push_back(pool3(name, {3, 4, 4, 6, 2}, {2, 2, 2}, {.strides = {2, 2, 2}, .pool_mode = mode}));
    rows.back().large = {{.shape = {8, 16, 16, 16, 32}}};
    rows.push_back(pool3(name + "_same", {2, 5, 3, 4, 2}, {2, 3, 2},
                         {.strides = {2, 1, 3}, .padding = "same", .pool_mode = mode}));
    rows.push_back(pool3(name + "_channels_first", {2, 3, 4, 3, 2}, {2, 2, 3},
                         {.padding = "same", .data_format = "channels_first", .pool_mode = mode}));
  }
  return rows;
}

std::vector<OpCase> maximum_rows() {
  std::vector<OpCase> rows;
  // The maximum of negative infinities is -infinity.
  const double infinity = std::numeric_limits<double>::infinity();
  rows.push_back({.name = "max_pool2d_of_infinities",
                  .inputs = {{.shape = {1, 2, 2, 1}, .values = {-infinity, -infinity, -infinity, -infinity}}},
                  .build =
                      [](const Exprs& e) {
                        return pool2d(e[0], {2, 2});
                      },
                  .reference = literal({1, 1, 1, 1}, {-infinity}),
                  .gradient = false});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  rows.push_back({.name = "max_pool2d_of_nan",
                  .inputs = {{.shape = {1, 1, 4, 1}, .values = {nan, 1, 2, 3}}},
                  .build =
                      [](const Exprs& e) {
                        return pool2d(e[0], {1, 2});
                      },
                  .reference = literal({1, 1, 3, 1}, {nan, 2, 3}),
                  .gradient = false,
                  .placement = false});
  // The gradient of max pooling. Its own gradient needs the positions of the maxima.
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
  // Among equal maxima the first cell receives the gradient.
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

SYNCLINE_OP_CASES(pool_rows)
SYNCLINE_OP_CASES(maximum_rows)

}  // namespace
}  // namespace syncline::testing
