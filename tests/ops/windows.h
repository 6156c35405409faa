// Helpers of the op cases of convolution and pooling: windows over images of one to three spatial axes, found by
// counting, and layouts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/ops/reference.h"

namespace syncline::testing {

using Steps = std::vector<std::int64_t>;

struct Windows {
  Steps size, strides, dilation_rate;
  std::string padding = "valid", data_format = "channels_last";

  int spatial() const { return static_cast<int>(size.size()); }
  bool first() const { return data_format == "channels_first"; }
  // The number of window positions over `in` elements of spatial axis i, and of the zeros before the first element.
  std::int64_t positions(int i, std::int64_t in) const;
  std::int64_t before(int i, std::int64_t in) const;
  // The shape (batch, spatial sizes) of a result, without channels, for an image of shape x with channels last.
  Shape result(const Shape& x) const;
  // Calls f(index in the window, spatial index in x) for each element of the window at `position` that lies in x.
  void for_taps(const Shape& x, const Index& position, const std::function<void(const Index&, const Index&)>& f) const;

  // Convert shapes and values between channels last and the order of data_format.
  Shape order(const Shape& last) const;
  Tensor to_last(const Tensor& x) const;
  Tensor from_last(const Tensor& x) const;
};

double& element(Tensor& x, const Index& index);
Tensor zeros_of(const Shape& shape);
Tensor permuted(const Tensor& x, const std::vector<int>& pattern);
// x with zeros before and after it on each axis, and the shape that this has.
Tensor padded(const Tensor& x, const Steps& before, const Shape& shape);
Shape padded_shape(Shape x, const Steps& before, const Steps& after);

}  // namespace syncline::testing
