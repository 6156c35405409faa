// Padding and enlarging of images and volumes, by pads and repetitions along the spatial axes.
#include "ops/convolution/image.h"
#include "ops/graph/deferred.h"
#include "ops/shape/merge.h"
#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

// Pads the axes from `axis` on.
Expr padded(const Expr& x, int axis, std::span<const Pads> padding) {
  std::vector<std::int64_t> before(static_cast<std::size_t>(x.ndim()), 0), after = before;
  for (const auto& [first, last] : padding) {
    before[static_cast<std::size_t>(axis)] = first;
    after[static_cast<std::size_t>(axis++)] = last;
  }
  return pad(x, std::move(before), std::move(after));
}

// The first spatial axis.
int space_axis(std::string_view op, const Expr& x, int spatial, std::string_view data_format) {
  const bool first = is_channels_first(op, data_format);
  check_image(op, x.shape(), spatial);
  return first ? 2 : 1;
}

Expr repeated(const Expr& x, int axis, const std::vector<std::int64_t>& factors) {
  Expr y = x;
  for (const std::int64_t factor : factors) {
    if (factor > 1) y = repeat_elements(y, static_cast<int>(factor), axis);
    ++axis;
  }
  return y;
}

// Along `axis`, element k * factor + i is x[k] * (1 - i / factor) + x[k + 1] * i / factor.
Expr interpolated(const Expr& x, int axis, int factor) {
  if (factor == 1 || x.shape()[axis] == 0) return x;
  if (x.shape()[axis] == kUnknown)  // it may be empty
    return once_known("resize_images", {x}, x.meta(),
                      [=](std::span<const Expr> in) { return interpolated(in[0], axis, factor); });
  std::vector<std::int64_t> none(static_cast<std::size_t>(x.ndim()), 0), one = none;
  one[static_cast<std::size_t>(axis)] = 1;
  const Expr rise = pad(trim(x, one, none) - trim(x, none, one), none, one);  // to the next element; 0 for the last
  Shape along(std::vector<std::int64_t>(static_cast<std::size_t>(x.ndim() - axis), 1));
  along[0] = factor;
  const Expr share = cast(reshape(arange(0, factor), along), x.dtype()) / static_cast<double>(factor);
  return merge_axes(expand_dims(x, axis + 1) + expand_dims(rise, axis + 1) * share, axis);
}

}  // namespace

Expr temporal_padding(const Expr& x, Pads padding) {
  check_image("temporal_padding", x.shape(), 1);
  return padded(x, 1, {&padding, 1});
}
Expr spatial_2d_padding(const Expr& x, const std::array<Pads, 2>& padding, std::string_view data_format) {
  return padded(x, space_axis("spatial_2d_padding", x, 2, data_format), padding);
}
Expr spatial_3d_padding(const Expr& x, const std::array<Pads, 3>& padding, std::string_view data_format) {
  return padded(x, space_axis("spatial_3d_padding", x, 3, data_format), padding);
}

Expr resize_images(const Expr& x, int height_factor, int width_factor, std::string_view data_format,
                   std::string_view interpolation) {
  constexpr std::string_view kName = "resize_images";
  const int axis = space_axis(kName, x, 2, data_format);
  check_steps(kName, "a factor", {height_factor, width_factor});
  if (interpolation == "nearest") return repeated(x, axis, {height_factor, width_factor});
  if (interpolation != "bilinear")
    fail<ValueError>(kName, ": unknown interpolation '", interpolation, "'; give 'nearest' or 'bilinear'");
  if (!is_floating(x.dtype())) fail<DTypeError>(kName, ": x is ", x.dtype(), "; cast it to a floating dtype first");
  return interpolated(interpolated(x, axis, height_factor), axis + 1, width_factor);
}

Expr resize_volumes(const Expr& x, int depth_factor, int height_factor, int width_factor,
                    std::string_view data_format) {
  constexpr std::string_view kName = "resize_volumes";
  const int axis = space_axis(kName, x, 3, data_format);
  check_steps(kName, "a factor", {depth_factor, height_factor, width_factor});
  return repeated(x, axis, {depth_factor, height_factor, width_factor});
}

}  // namespace syncline
