// What convolution and pooling share. How a window slides over one axis of an image: the size of the result and the
// zeros before the image, by TensorFlow's rule. The names of paddings and data formats, and the change between the
// latter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/shape.h"
#include "ops/shape.h"

namespace syncline {

struct Window {
  std::int64_t size = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  bool same = false;  // padding "same"

  std::int64_t reach() const { return (size - 1) * dilation + 1; }
};

// Positions of the window over `in` elements; unknown if `in` is. Throws ShapeError if it does not fit once.
inline std::int64_t window_positions(std::string_view op, std::int64_t in, const Window& w) {
  if (in == kUnknown) return kUnknown;
  if (w.same) return (in + w.stride - 1) / w.stride;
  if (in < w.reach())
    fail<ShapeError>(op, ": a window that reaches over ", w.reach(), " does not fit into an image of ", in,
                     "; use padding 'same' or a smaller window");
  return (in - w.reach()) / w.stride + 1;
}

inline std::int64_t pad_before(std::int64_t in, const Window& w) {
  if (!w.same) return 0;
  const std::int64_t positions = (in + w.stride - 1) / w.stride;
  return std::max<std::int64_t>((positions - 1) * w.stride + w.reach() - in, 0) / 2;
}

// Throws ValueError for a step below 1.
inline std::int64_t positive_step(std::string_view op, std::string_view what, std::int64_t value) {
  if (value < 1) fail<ValueError>(op, ": ", what, " of ", value, "; give 1 or more");
  return value;
}

inline bool is_same_padding(std::string_view op, const std::string& padding) {
  if (padding != "same" && padding != "valid")
    fail<ValueError>(op, ": unknown padding '", padding, "'; give 'valid' or 'same'");
  return padding == "same";
}

inline bool is_channels_first(std::string_view op, const std::string& data_format) {
  if (data_format != "channels_first" && data_format != "channels_last")
    fail<ValueError>(op, ": unknown data_format '", data_format, "'; give 'channels_last' or 'channels_first'");
  return data_format == "channels_first";
}

// (batch, channels, height, width) -> (batch, height, width, channels), and back. Throws ShapeError for another number
// of dimensions.
inline Expr channels_to_back(std::string_view op, const Expr& x) {
  if (x.ndim() != 4) fail<ShapeError>(op, ": x has the shape ", x.shape(), "; images have four dimensions");
  return permute_dimensions(x, {0, 2, 3, 1});
}
inline Expr channels_to_front(const Expr& x) { return permute_dimensions(x, {0, 3, 1, 2}); }

}  // namespace syncline
