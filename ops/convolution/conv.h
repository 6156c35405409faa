// The ops behind the convolutions of syncline/backend/convolution.h, for one to three spatial axes. Images have
// channels last; kernels are (space..., in, out), those of depthwise convolutions (space..., channels).
#pragma once

#include <cstdint>
#include <vector>

#include "ops/convolution/image.h"

namespace syncline {

struct ConvAttrs {
  std::vector<std::int64_t> strides, dilation_rate;  // one number a spatial axis
  Padding padding = Padding::kValid;
  // Of the result's spatial axes, where the operands do not tell: of dx in ConvGradInput, of dw in ConvGradKernel.
  Shape size = {};
};

// Throws ValueError for a stride or dilation rate below 1.
inline ConvAttrs conv_attrs(std::string_view op, std::vector<std::int64_t> strides,
                            std::vector<std::int64_t> dilation_rate, Padding padding) {
  check_steps(op, "a stride", strides);
  check_steps(op, "a dilation rate", dilation_rate);
  return {std::move(strides), std::move(dilation_rate), padding, {}};
}

// The same of Conv2DOptions and Conv3DOptions.
template <class Options>
ConvAttrs conv_attrs(std::string_view op, const Options& o) {
  return conv_attrs(op, {o.strides.begin(), o.strides.end()}, {o.dilation_rate.begin(), o.dilation_rate.end()},
                    padding_of(op, o.padding));
}

Expr conv(const Expr& x, const Expr& kernel, const ConvAttrs& attrs);
Expr depthwise_conv(const Expr& x, const Expr& kernel, const ConvAttrs& attrs);
// What convolves to something of y's shape. A size that is unknown follows from y's by elements_under.
Expr transposed_conv(const Expr& kernel, const Expr& y, const ConvAttrs& attrs);

}  // namespace syncline
