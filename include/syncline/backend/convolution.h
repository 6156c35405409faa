// Convolution, pooling and biases of the Keras backend, with Keras's names and defaults.
//
// Tensors are floating. Images are (batch, space..., channels), or (batch, channels, space...) with data_format
// "channels_first"; the layout of kernels does not depend on it. padding is "valid" or "same" (TensorFlow's: an odd
// zero is added at the end), in conv1d also "causal" (all zeros at the beginning). Strides and dilation rates combine
// freely. All functions throw ShapeError, DTypeError and ValueError (an unknown data_format, padding or pool_mode)
// while the graph is built, or at the first feeds whose shapes do not fit. All dimensions of images may be unknown; of
// kernels only the numbers of channels.
#pragma once

#include <array>
#include <string>

#include "syncline/config.h"
#include "syncline/expr.h"

#pragma GCC visibility push(default)
namespace syncline {

// x + bias. bias: a vector along the channels, or a tensor of shape (space..., channels), which has one dimension less
// than x. With "channels_first" that tensor's elements are laid out as (channels, space...), as in Keras. The channels
// of an x of up to two dimensions are its last axis.
Expr bias_add(const Expr& x, const Expr& bias, const std::string& data_format = current_config().image_data_format);

struct Conv1DOptions {
  int strides = 1;
  std::string padding = "valid";
  std::string data_format = current_config().image_data_format;
  int dilation_rate = 1;
};
struct Conv2DOptions {
  std::array<int, 2> strides{1, 1};
  std::string padding = "valid";
  std::string data_format = current_config().image_data_format;
  std::array<int, 2> dilation_rate{1, 1};
};
struct Conv3DOptions {
  std::array<int, 3> strides{1, 1, 1};
  std::string padding = "valid";
  std::string data_format = current_config().image_data_format;
  std::array<int, 3> dilation_rate{1, 1, 1};
};

// kernel: (space..., channels of x, channels of the result).
Expr conv1d(const Expr& x, const Expr& kernel, const Conv1DOptions& options = {});
Expr conv2d(const Expr& x, const Expr& kernel, const Conv2DOptions& options = {});
Expr conv3d(const Expr& x, const Expr& kernel, const Conv3DOptions& options = {});

// The gradient of a convolution. kernel: (space..., channels of the result, channels of x); output_shape: the result's
// shape in data_format's order. Its batch may be unknown. An unknown size is computed as in Keras's layers: n * stride,
// plus, with "valid", the part of the window beyond its stride.
Expr conv2d_transpose(const Expr& x, const Expr& kernel, const Shape& output_shape, const Conv2DOptions& options = {});
Expr conv3d_transpose(const Expr& x, const Expr& kernel, const Shape& output_shape, const Conv3DOptions& options = {});

// Convolves each channel of x separately into `multiplier` channels. depthwise_kernel: (height, width, channels of x,
// multiplier); the result has channels of x * multiplier.
Expr depthwise_conv2d(const Expr& x, const Expr& depthwise_kernel, const Conv2DOptions& options = {});
// A depthwise convolution, then a pointwise convolution that mixes channels. depthwise_kernel: (space..., channels of
// x, multiplier); pointwise_kernel: (1..., channels of x * multiplier, channels of the result).
Expr separable_conv1d(const Expr& x, const Expr& depthwise_kernel, const Expr& pointwise_kernel,
                      const Conv1DOptions& options = {});
Expr separable_conv2d(const Expr& x, const Expr& depthwise_kernel, const Expr& pointwise_kernel,
                      const Conv2DOptions& options = {});

// Convolutions with separate weights at each position, without padding. kernel: (positions, features, channels of the
// result), its first two dimensions known. Positions count row by row; features are the elements under a window in the
// order of x's axes: (space..., channels), or (channels, space...) with "channels_first". local_conv1d has as many
// positions as its kernel, local_conv2d output_shape's rows and columns.
Expr local_conv1d(const Expr& inputs, const Expr& kernel, int kernel_size, int strides,
                  const std::string& data_format = current_config().image_data_format);
Expr local_conv2d(const Expr& inputs, const Expr& kernel, std::array<int, 2> kernel_size, std::array<int, 2> strides,
                  std::array<int, 2> output_shape, const std::string& data_format = current_config().image_data_format);

struct Pool2DOptions {
  std::array<int, 2> strides{1, 1};
  std::string padding = "valid";
  std::string data_format = current_config().image_data_format;
  std::string pool_mode = "max";  // or "avg": the mean of the elements inside the image
};
struct Pool3DOptions {
  std::array<int, 3> strides{1, 1, 1};
  std::string padding = "valid";
  std::string data_format = current_config().image_data_format;
  std::string pool_mode = "max";
};
Expr pool2d(const Expr& x, std::array<int, 2> pool_size, const Pool2DOptions& options = {});
Expr pool3d(const Expr& x, std::array<int, 3> pool_size, const Pool3DOptions& options = {});

}  // namespace syncline
#pragma GCC visibility pop
