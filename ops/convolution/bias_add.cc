// bias_add: reshapes the bias to x's layout and adds it.
#include "ops/convolution/image.h"
#include "ops/graph/deferred.h"
#include "ops/graph/elementwise.h"
#include "syncline/backend/convolution.h"
#include "syncline/backend/math.h"

namespace syncline {

Expr bias_add(const Expr& x, const Expr& bias, const std::string& data_format) {
  constexpr std::string_view kName = "bias_add";
  const int ndim = x.ndim();
  // 'channels_first' needs at least three dimensions; otherwise channels are last.
  const bool first = is_channels_first(kName, data_format) && ndim >= 3;
  const int vector_axis = first ? 1 : ndim - 1;
  Shape shape(std::vector<std::int64_t>(static_cast<std::size_t>(ndim), 1));
  bool fits = (bias.ndim() == 1 && ndim > 0) || (bias.ndim() > 1 && bias.ndim() == ndim - 1);
  if (fits) shape[vector_axis] = bias.shape().back();
  for (int axis = 0; fits && bias.ndim() > 1 && axis < ndim - 2; ++axis)
    shape[axis + (first ? 2 : 1)] = bias.shape()[axis];
  // Sizes must be equal: broadcasting alone would also accept a bias of size one.
  bool decided = true;
  for (int axis = bias.ndim() > 1 ? 1 : vector_axis; fits && axis < ndim; ++axis) {
    if (axis != vector_axis && bias.ndim() == 1) continue;
    const bool known = shape[axis] != kUnknown && x.shape()[axis] != kUnknown;
    decided = decided && known;
    fits = !known || shape[axis] == x.shape()[axis];
  }
  if (!fits)
    fail<ShapeError>(kName, ": bias of shape ", bias.shape(), " does not fit x of shape ", x.shape(), " with ",
                     data_format, "; give a vector with one value per channel, or ", ndim - 1,
                     " dimensions: those of space and the channels");
  if (decided) return vector_axis == ndim - 1 ? x + bias : x + reshape(bias, std::move(shape));
  const Meta operands[] = {x.meta(), {bias.dtype(), shape}};
  return once_known(std::string(kName), {x, bias}, infer_arithmetic(kName, operands),
                    [data_format](std::span<const Expr> in) { return bias_add(in[0], in[1], data_format); });
}

}  // namespace syncline
