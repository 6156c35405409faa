// Convolution, pooling and biases of the Keras backend, with Keras's names and defaults.
//
// Tensors are floating. Images are (batch, height, width, channels), or (batch, channels, height, width) with
// data_format "channels_first"; padding is "valid" or "same" (TensorFlow's: the odd zero goes to the end). All
// functions throw ShapeError, DTypeError and ValueError while the graph is built, or when shapes that were unknown then
// do not fit once they are fed. Height and width must be known when a gradient is asked for; batch may be unknown.
#pragma once

#include <array>
#include <string>

#include "ops/expr.h"

namespace syncline {

// x + bias. bias: a vector along the channels, or (1-d short of x) one value for each place and channel, channels last.
Expr bias_add(const Expr& x, const Expr& bias, const std::string& data_format = "channels_last");

struct Conv2DOptions {
  std::array<int, 2> strides{1, 1};
  std::string padding = "valid";
  std::string data_format = "channels_last";
  std::array<int, 2> dilation_rate{1, 1};
};
// kernel: (height, width, channels of x, channels of the result).
Expr conv2d(const Expr& x, const Expr& kernel, const Conv2DOptions& options = {});
// The gradient of conv2d as a function. kernel: (height, width, channels of the result, channels of x); output_shape:
// the result's, in data_format's order, all known but the batch.
Expr conv2d_transpose(const Expr& x, const Expr& kernel, const Shape& output_shape, const Conv2DOptions& options = {});

struct Pool2DOptions {
  std::array<int, 2> strides{1, 1};
  std::string padding = "valid";
  std::string data_format = "channels_last";
  std::string pool_mode = "max";  // or "avg": the mean of the elements inside the image
};
Expr pool2d(const Expr& x, std::array<int, 2> pool_size, const Pool2DOptions& options = {});

}  // namespace syncline
