// bias_add: an addition with the bias brought into x's layout.
#include "ops/convolution.h"
#include "ops/convolution/image.h"
#include "ops/math.h"

namespace syncline {

Expr bias_add(const Expr& x, const Expr& bias, const std::string& data_format) {
  constexpr std::string_view kName = "bias_add";
  const int ndim = x.ndim();
  const bool first = is_channels_first(kName, data_format);
  if (bias.ndim() != 1 && bias.ndim() != ndim - 1)
    fail<ShapeError>(kName, ": bias of shape ", bias.shape(), " for x of shape ", x.shape(), "; give a vector or ",
                     ndim - 1, " dimensions");
  // Below three dimensions there is no image whose channels could come first.
  if (!first || ndim < 3) return x + bias;
  Shape shape(std::vector<std::int64_t>(static_cast<std::size_t>(ndim), 1));
  shape[1] = bias.shape().back();
  if (bias.ndim() > 1)
    for (int axis = 2; axis < ndim; ++axis) shape[axis] = bias.shape()[axis - 2];
  return x + reshape(bias, std::move(shape));
}

}  // namespace syncline
