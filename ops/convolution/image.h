// Shared by convolution and pooling: window geometry along one axis (result size and zeros before the image, by
// TensorFlow's rule), names of paddings and data formats, and layout changes. Images have one to three spatial axes.
// Errors name `op`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string_view>
#include <vector>

#include "ops/graph/op.h"
#include "syncline/backend/shape.h"
#include "syncline/error.h"
#include "syncline/shape.h"

namespace syncline {

enum class Padding : std::uint8_t {
  kValid,   // no zeros, unless Window gives some
  kSame,    // ceil(elements / stride) positions; an odd zero goes to the end
  kCausal,  // positions as kSame, but all zeros come first: results never read later elements
};

inline std::ostream& operator<<(std::ostream& out, Padding padding) {
  return out << (padding == Padding::kValid ? "valid" : padding == Padding::kSame ? "same" : "causal");
}

struct Window {
  std::int64_t size = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  Padding padding = Padding::kValid;
  std::int64_t before = 0, after = 0;  // explicit zeros beside the image, with kValid

  // Elements from the first to the last tap.
  std::int64_t reach() const { return size == 0 ? 0 : size_product("window", size - 1, dilation) + 1; }
};

[[noreturn]] inline void fail_window(std::string_view op, std::int64_t in, const Window& w) {
  fail<ShapeError>(op, ": a window that spans ", w.reach(), " elements does not fit into an image of ", in,
                   "; use padding 'same' or a smaller window");
}

// Number of window positions over `in` elements, or kUnknown. Zero, as in TensorFlow, if the image is at most one
// stride shorter than the window; throws ShapeError for a shorter image.
inline std::int64_t window_positions(std::string_view op, std::int64_t in, const Window& w) {
  if (in == kUnknown) return kUnknown;
  if (w.padding != Padding::kValid) return (in + w.stride - 1) / w.stride;
  if (w.size == kUnknown) return kUnknown;
  const std::int64_t elements = in + w.before + w.after;
  if (elements < w.reach() - w.stride) fail_window(op, elements, w);
  return (elements - w.reach() + w.stride) / w.stride;
}

// Throws for an image that is known to be smaller than the window while a graph is built. Fed images may be smaller.
inline void check_window(std::string_view op, std::int64_t in, const Window& w) {
  if (in == kUnknown || w.size == kUnknown || w.padding != Padding::kValid) return;
  if (in + w.before + w.after < w.reach()) fail_window(op, in + w.before + w.after, w);
}

inline std::int64_t pad_before(std::int64_t in, const Window& w) {
  if (w.padding == Padding::kValid) return w.before;
  if (w.padding == Padding::kCausal) return w.reach() - 1;
  const std::int64_t positions = (in + w.stride - 1) / w.stride;
  return std::max<std::int64_t>((positions - 1) * w.stride + w.reach() - in, 0) / 2;
}

// Elements under `positions` windows if no size is given: Keras's rule for transposed convolutions, which have no
// explicit zeros.
inline std::int64_t elements_under(std::int64_t positions, const Window& w) {
  if (positions == kUnknown) return kUnknown;
  const std::int64_t elements = size_product("window", positions, w.stride);
  if (w.padding != Padding::kValid) return elements;
  return w.size == kUnknown ? kUnknown : elements + std::max<std::int64_t>(w.reach() - w.stride, 0);
}

// Throws ValueError for a value outside [1, kLargestSize].
inline void check_steps(std::string_view op, std::string_view what, const std::vector<std::int64_t>& values) {
  for (const std::int64_t value : values)
    if (value < 1 || value > kLargestSize) fail<ValueError>(op, ": ", what, " of ", value, "; give 1 to 2^47");
}

inline Padding padding_of(std::string_view op, std::string_view padding) {
  if (padding == "same") return Padding::kSame;
  if (padding == "valid") return Padding::kValid;
  fail<ValueError>(op, ": unknown padding '", padding, "'; give 'valid' or 'same'");
}

// padding_of() for an axis of time, which also accepts 'causal'.
inline Padding temporal_padding_of(std::string_view op, std::string_view padding) {
  if (padding == "causal") return Padding::kCausal;
  if (padding == "same" || padding == "valid") return padding_of(op, padding);
  fail<ValueError>(op, ": unknown padding '", padding, "'; give 'valid', 'same' or 'causal'");
}

inline bool is_channels_first(std::string_view op, std::string_view data_format) {
  if (data_format != "channels_first" && data_format != "channels_last")
    fail<ValueError>(op, ": unknown data_format '", data_format, "'; give 'channels_last' or 'channels_first'");
  return data_format == "channels_first";
}

inline void check_image(std::string_view op, const Shape& x, int spatial) {
  if (x.ndim() != spatial + 2)
    fail<ShapeError>(op, ": x has the shape ", x, "; it needs ", spatial + 2, " dimensions: batch, channels and ",
                     spatial, " spatial ones");
}

// Keeps a batch split of operand `image` in the result; gathers the other operands.
inline Placed place_images(const PlaceArgs& args, std::size_t image) {
  Placed placed = gathered(args);
  if (args.at[image].is_split(0)) placed.in[image] = placed.out[0] = Placement::split(0);
  return placed;
}

// (batch, channels, space...) -> (batch, space..., channels), and back.
inline Expr channels_to_back(const Expr& x) {
  std::vector<int> pattern{0};
  for (int axis = 2; axis < x.ndim(); ++axis) pattern.push_back(axis);
  pattern.push_back(1);
  return permute_dimensions(x, pattern);
}
inline Expr channels_to_front(const Expr& x) {
  std::vector<int> pattern{0, x.ndim() - 1};
  for (int axis = 1; axis + 1 < x.ndim(); ++axis) pattern.push_back(axis);
  return permute_dimensions(x, pattern);
}

// Applies f to x with channels last; the result has x's layout. Throws ShapeError for a wrong number of dimensions.
template <class F>
Expr with_channels_last(std::string_view op, const Expr& x, int spatial, std::string_view data_format, const F& f) {
  const bool first = is_channels_first(op, data_format);
  check_image(op, x.shape(), spatial);
  return first ? channels_to_front(f(channels_to_back(x))) : f(x);
}

}  // namespace syncline
