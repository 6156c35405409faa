// Convolution ops behind syncline/backend/convolution.h, for one to three spatial axes. Images are
// (batch, space..., channels), kernels (space..., in, out), depthwise kernels (space..., channels).
#pragma once

#include <cstdint>
#include <vector>

#include "ops/convolution/image.h"

namespace syncline {

// By a rule, or explicit zeros beside the image.
struct ConvPadding {
  Padding rule = Padding::kValid;
  std::vector<std::int64_t> before = {}, after = {};  // with kValid, on each spatial axis; empty: none

  friend bool operator==(const ConvPadding&, const ConvPadding&) = default;
};

inline std::ostream& operator<<(std::ostream& out, const ConvPadding& padding) {
  out << padding.rule;
  for (std::size_t i = 0; i < padding.before.size(); ++i)
    out << (i == 0 ? " [" : ", ") << padding.before[i] << '+' << padding.after[i];
  return out << (padding.before.empty() ? "" : "]");
}
inline std::uint64_t hash_of(const ConvPadding& padding) {
  const std::uint64_t zeros = attrs::mix(attrs::hash_of(padding.before), attrs::hash_of(padding.after));
  return attrs::mix(zeros, attrs::hash_of(padding.rule));
}

struct ConvAttrs {
  std::vector<std::int64_t> strides, dilation_rate;  // one number per spatial axis
  ConvPadding padding = {};
  // Spatial shape of a result that the operands do not determine: dx of ConvGradInput, dw of ConvGradKernel.
  Shape size = {};
};

// Throws ValueError for a stride or dilation rate below 1.
inline ConvAttrs conv_attrs(std::string_view op, std::vector<std::int64_t> strides,
                            std::vector<std::int64_t> dilation_rate, Padding padding) {
  check_steps(op, "a stride", strides);
  check_steps(op, "a dilation rate", dilation_rate);
  return {std::move(strides), std::move(dilation_rate), {.rule = padding}};
}

// From Conv2DOptions or Conv3DOptions.
template <class Options>
ConvAttrs conv_attrs(std::string_view op, const Options& o) {
  return conv_attrs(op, {o.strides.begin(), o.strides.end()}, {o.dilation_rate.begin(), o.dilation_rate.end()},
                    padding_of(op, o.padding));
}

// These throw ShapeError for shapes that do not fit, and DTypeError unless both operands have one floating dtype.
Expr conv(const Expr& x, const Expr& kernel, const ConvAttrs& attrs);
Expr depthwise_conv(const Expr& x, const Expr& kernel, const ConvAttrs& attrs);
// Transposed convolution: an image of the spatial shape attrs.size. Unknown sizes follow from y by elements_under().
Expr transposed_conv(const Expr& kernel, const Expr& y, const ConvAttrs& attrs);

}  // namespace syncline
