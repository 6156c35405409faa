// conv1d, conv2d, conv3d, conv2d_transpose and conv3d_transpose: they convert other layouts to channels last and back.
#include "ops/convolution/conv.h"
#include "ops/graph/deferred.h"
#include "syncline/backend/convolution.h"

namespace syncline {
namespace {

Expr convolved(std::string_view op, const Expr& x, const Expr& kernel, const ConvAttrs& attrs,
               const std::string& data_format) {
  const int spatial = static_cast<int>(attrs.strides.size());
  return with_channels_last(op, x, spatial, data_format, [&](const Expr& image) { return conv(image, kernel, attrs); });
}

Expr transposed(std::string_view op, const Expr& x, const Expr& kernel, const Shape& output_shape,
                const ConvAttrs& options, const std::string& data_format) {
  ConvAttrs attrs = options;
  const int spatial = static_cast<int>(attrs.strides.size());
  const bool first = is_channels_first(op, data_format);
  if (output_shape.ndim() != spatial + 2)
    fail<ShapeError>(op, ": output_shape ", output_shape, " does not have ", spatial + 2,
                     " dimensions; give the sizes of batch, channels and the ", spatial,
                     " spatial axes in the order of data_format");
  for (int axis = 0; axis < spatial; ++axis) attrs.size.push_back(output_shape[axis + (first ? 2 : 1)]);
  const Expr y = with_channels_last(op, x, spatial, data_format,
                                    [&](const Expr& image) { return transposed_conv(kernel, image, attrs); });
  Meta out = y.meta();
  for (int axis = 0; axis < y.ndim(); ++axis) {
    if (output_shape[axis] == kUnknown) continue;
    if (out.shape[axis] == kUnknown) out.shape[axis] = output_shape[axis];
    if (out.shape[axis] != output_shape[axis])
      fail<ShapeError>(op, ": output_shape is ", output_shape, ", but x of shape ", x.shape(),
                       " and a kernel of shape ", kernel.shape(), " give ", y.shape());
  }
  if (out == y.meta()) return y;
  return once_known(std::string(op), {x, kernel}, std::move(out), [=](std::span<const Expr> in) {
    return transposed(op, in[0], in[1], output_shape, options, data_format);
  });
}

}  // namespace

Expr conv1d(const Expr& x, const Expr& kernel, const Conv1DOptions& o) {
  constexpr std::string_view kName = "conv1d";
  const Padding padding = temporal_padding_of(kName, o.padding);
  return convolved(kName, x, kernel, conv_attrs(kName, {o.strides}, {o.dilation_rate}, padding), o.data_format);
}
Expr conv2d(const Expr& x, const Expr& kernel, const Conv2DOptions& options) {
  return convolved("conv2d", x, kernel, conv_attrs("conv2d", options), options.data_format);
}
Expr conv3d(const Expr& x, const Expr& kernel, const Conv3DOptions& options) {
  return convolved("conv3d", x, kernel, conv_attrs("conv3d", options), options.data_format);
}

Expr conv2d_transpose(const Expr& x, const Expr& kernel, const Shape& output_shape, const Conv2DOptions& options) {
  constexpr std::string_view kName = "conv2d_transpose";
  return transposed(kName, x, kernel, output_shape, conv_attrs(kName, options), options.data_format);
}
Expr conv3d_transpose(const Expr& x, const Expr& kernel, const Shape& output_shape, const Conv3DOptions& options) {
  constexpr std::string_view kName = "conv3d_transpose";
  return transposed(kName, x, kernel, output_shape, conv_attrs(kName, options), options.data_format);
}

}  // namespace syncline
