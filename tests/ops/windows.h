// What the rows of convolution and pooling share: windows over images of one to three spatial axes, worked out by
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
  // Positions over `in` elements of spatial axis i, and zeros before the first element.
  std::int64_t positions(int i, std::int64_t in) const;
  std::int64_t before(int i, std::int64_t in) const;
  // (batch, space..., ...) of a result, without its channels, for an image with channels last.
  Shape result(const Shape& x) const;
  // Calls f(place in the window, position in space of x) for each tap of the window at `position` that lies in x.
  void for_taps(const Shape& x, const Index& position, const std::function<void(const Index&, const Index&)>& f) const;

  // Shapes and values between channels last and data_format's order.
  Shape order(const Shape& last) const;
  Tensor to_last(const Tensor& x) const;
  Tensor from_last(const Tensor& x) const;
};

double& element(Tensor& x, const Index& index);
Tensor zeros_of(const Shape& shape);
Tensor permuted(const Tensor& x, const std::vector<int>& pattern);

}  // namespace syncline::testing
