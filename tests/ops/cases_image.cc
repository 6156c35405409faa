// Op cases of padding and resizing images and volumes.
#include <algorithm>

#include "syncline/backend/shape.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;
using Tensors = std::span<const Tensor>;

// x with before[i] zeros before it and after[i] zeros after it along axis i.
Reference padded(std::vector<std::int64_t> before, std::vector<std::int64_t> after) {
  return [=](Tensors in) {
    const Tensor& x = in[0];
    Shape shape;
    for (int axis = 0; axis < x.shape.ndim(); ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      shape.push_back(before[i] + x.shape[axis] + after[i]);
    }
    return tabulate(shape, [&](const Index& out) {
      Index from = out;
      for (std::size_t i = 0; i < from.size(); ++i) {
        from[i] -= before[i];
        if (from[i] < 0 || from[i] >= x.shape[static_cast<int>(i)]) return 0.0;
      }
      return at(x, from);
    });
  };
}

// Repeats each element factors[i] times along axis i.
Reference enlarged(std::vector<std::int64_t> factors) {
  return [=](Tensors in) {
    Shape shape = in[0].shape;
    for (int axis = 0; axis < shape.ndim(); ++axis) shape[axis] *= factors[static_cast<std::size_t>(axis)];
    return tabulate(shape, [&](const Index& out) {
      Index from = out;
      for (std::size_t i = 0; i < from.size(); ++i) from[i] /= factors[i];
      return at(in[0], from);
    });
  };
}

// Bilinear interpolation: the mean of the four neighbours, weighted by nearness. `rows`: the axis of rows.
Reference bilinear(int rows, std::int64_t height_factor, std::int64_t width_factor) {
  return [=](Tensors in) {
    Shape shape = in[0].shape;
    shape[rows] *= height_factor;
    shape[rows + 1] *= width_factor;
    return tabulate(shape, [&](const Index& out) {
      const auto r = static_cast<std::size_t>(rows), c = r + 1;
      const double down = static_cast<double>(out[r] % height_factor) / static_cast<double>(height_factor);
      const double right = static_cast<double>(out[c] % width_factor) / static_cast<double>(width_factor);
      double sum = 0;
      for (const std::int64_t i : {0, 1})
        for (const std::int64_t j : {0, 1}) {
          Index from = out;
          from[r] = std::min(out[r] / height_factor + i, in[0].shape[rows] - 1);
          from[c] = std::min(out[c] / width_factor + j, in[0].shape[rows + 1] - 1);
          sum += at(in[0], from) * (i == 1 ? down : 1 - down) * (j == 1 ? right : 1 - right);
        }
      return sum;
    });
  };
}

OpCase row(std::string name, Shape x, Builder build, Reference reference) {
  return {.name = std::move(name),
          .inputs = {{.shape = std::move(x)}},
          .build = std::move(build),
          .reference = std::move(reference),
          .second_gradient = true};
}

std::vector<OpCase> image_rows() {
  return {
      row(
          "spatial_3d_padding", {3, 2, 3, 2, 2}, [](const Exprs& x) { return spatial_3d_padding(x[0]); },
          padded({0, 1, 1, 1, 0}, {0, 1, 1, 1, 0})),
      row(
          "spatial_3d_padding_channels_first", {3, 2, 2, 3, 2},
          [](const Exprs& x) {
            return spatial_3d_padding(x[0], {{{1, 0}, {0, 2}, {3, 1}}}, "channels_first");
          },
          padded({0, 0, 1, 0, 3}, {0, 0, 0, 2, 1})),
      row(
          "resize_images", {3, 2, 3, 2}, [](const Exprs& x) { return resize_images(x[0], 2, 3, "channels_last"); },
          enlarged({1, 2, 3, 1})),
      row(
          "resize_images_channels_first", {3, 2, 3, 2},
          [](const Exprs& x) { return resize_images(x[0], 3, 1, "channels_first", "nearest"); },
          enlarged({1, 1, 3, 1})),
      row(
          "resize_images_bilinear", {3, 3, 4, 2},
          [](const Exprs& x) { return resize_images(x[0], 2, 3, "channels_last", "bilinear"); }, bilinear(1, 2, 3)),
      row(
          "resize_images_bilinear_channels_first", {3, 2, 3, 1},
          [](const Exprs& x) { return resize_images(x[0], 4, 2, "channels_first", "bilinear"); }, bilinear(2, 4, 2)),
      row(
          "resize_volumes", {3, 2, 1, 3, 2},
          [](const Exprs& x) { return resize_volumes(x[0], 2, 3, 1, "channels_last"); }, enlarged({1, 2, 3, 1, 1})),
      row(
          "resize_volumes_channels_first", {3, 2, 2, 1, 3},
          [](const Exprs& x) { return resize_volumes(x[0], 1, 2, 2, "channels_first"); }, enlarged({1, 1, 1, 2, 2})),
  };
}

SYNCLINE_OP_CASES(image_rows)

}  // namespace
}  // namespace syncline::testing
