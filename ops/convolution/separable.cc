// Depthwise and separable convolutions. Channels with several results are repeated first, because the loops compute one
// result per channel.
#include "ops/convolution/conv.h"
#include "ops/graph/deferred.h"
#include "ops/shape/merge.h"
#include "syncline/backend/convolution.h"

namespace syncline {
namespace {

// kernel: (space..., channels, multiplier). x has channels last.
Expr depthwise(std::string_view op, const Expr& x, const Expr& kernel, const ConvAttrs& attrs) {
  const int spatial = static_cast<int>(attrs.strides.size());
  const Shape& k = kernel.shape();
  if (k.ndim() != spatial + 2 || k.back() == kUnknown)
    fail<ShapeError>(op, ": the depthwise kernel has the shape ", k, "; it needs ", spatial + 2,
                     " dimensions: the spatial ones, channels, and a known multiplier");
  const auto channels = k[spatial], multiplier = k[spatial + 1];
  if (x.shape().back() != channels && x.shape().back() != kUnknown && channels != kUnknown)
    fail<ShapeError>(op, ": x with channels last, of shape ", x.shape(), ", and a depthwise kernel of shape ", k,
                     " have different numbers of channels: ", x.shape().back(), " and ", channels);
  const Expr image = multiplier == 1 ? x : repeat_elements(x, static_cast<int>(multiplier), -1);
  const Expr y = depthwise_conv(image, merge_axes(kernel, spatial), attrs);
  if (multiplier > 0 || (x.shape().back() != kUnknown && channels != kUnknown)) return y;
  // With a multiplier of 0 the op cannot compare the unknown channels: check them once they are known.
  return once_known(std::string(op), {x, kernel}, y.meta(),
                    [op, attrs](std::span<const Expr> in) { return depthwise(op, in[0], in[1], attrs); });
}

Expr separable(std::string_view op, const Expr& x, const Expr& depthwise_kernel, const Expr& pointwise_kernel,
               const ConvAttrs& attrs, const std::string& data_format) {
  const int spatial = static_cast<int>(attrs.strides.size());
  const std::vector<std::int64_t> ones(static_cast<std::size_t>(spatial), 1);
  const Shape& p = pointwise_kernel.shape();
  bool pointwise = p.ndim() == spatial + 2;
  for (int axis = 0; pointwise && axis < spatial; ++axis) pointwise = p[axis] == 1 || p[axis] == kUnknown;
  if (!pointwise)
    fail<ShapeError>(op, ": the pointwise kernel has the shape ", p, "; it needs ", spatial + 2,
                     " dimensions, of which the first ", spatial, " are 1");
  Shape target(ones);
  target.push_back(p[spatial]);
  target.push_back(p[spatial + 1]);
  const Expr mix = reshape(pointwise_kernel, target);  // refuses unknown sizes that are not 1
  return with_channels_last(op, x, spatial, data_format, [&](const Expr& image) {
    // 'same' accepts the depthwise result of an image smaller than the window, which has no elements.
    return conv(depthwise(op, image, depthwise_kernel, attrs), mix, {ones, ones, Padding::kSame, {}});
  });
}

}  // namespace

Expr depthwise_conv2d(const Expr& x, const Expr& depthwise_kernel, const Conv2DOptions& options) {
  constexpr std::string_view kName = "depthwise_conv2d";
  const ConvAttrs attrs = conv_attrs(kName, options);
  return with_channels_last(kName, x, 2, options.data_format,
                            [&](const Expr& image) { return depthwise(kName, image, depthwise_kernel, attrs); });
}

Expr separable_conv1d(const Expr& x, const Expr& depthwise_kernel, const Expr& pointwise_kernel,
                      const Conv1DOptions& o) {
  constexpr std::string_view kName = "separable_conv1d";
  return separable(kName, x, depthwise_kernel, pointwise_kernel,
                   conv_attrs(kName, {o.strides}, {o.dilation_rate}, padding_of(kName, o.padding)), o.data_format);
}

Expr separable_conv2d(const Expr& x, const Expr& depthwise_kernel, const Expr& pointwise_kernel,
                      const Conv2DOptions& options) {
  constexpr std::string_view kName = "separable_conv2d";
  return separable(kName, x, depthwise_kernel, pointwise_kernel, conv_attrs(kName, options), options.data_format);
}

}  // namespace syncline
