#include "ops/reduce/axes.h"

#include <algorithm>
#include <functional>

#include "syncline/backend/shape.h"

namespace syncline {

AxisMask axis_mask(std::string_view op, const std::vector<int>& axes, int ndim) {
  if (ndim > kMaxDims) fail<ShapeError>(op, ": x has ", ndim, " dimensions; at most ", kMaxDims, " can be reduced");
  AxisMask mask;
  mask.ndim = ndim;
  for (const int axis : axes) {
    bool& on = mask.on[static_cast<std::size_t>(wrap_axis(op, axis, ndim))];
    if (on) fail<ValueError>(op, ": axis ", axis, " is given twice");
    on = true;
  }
  return mask;
}

Shape reduced_shape(const Shape& shape, const AxisMask& mask, bool keepdims) {
  Shape out;
  for (int axis = 0; axis < shape.ndim(); ++axis) {
    if (!mask[axis]) out.push_back(shape[axis]);
    else if (keepdims) out.push_back(1);
  }
  return out;
}

Expr with_kept_axes(const Expr& reduced, const std::vector<int>& axes, int operand_ndim, bool keepdims) {
  Expr kept = reduced;
  if (keepdims) return kept;
  const AxisMask mask = axis_mask("with_kept_axes", axes, operand_ndim);
  for (int axis = 0; axis < operand_ndim; ++axis)
    if (mask[axis]) kept = expand_dims(kept, axis);
  return kept;
}

Expr reduced_nothing(std::string_view op, const ReduceAttrs& a, const Expr& x, const Meta& out) {
  const AxisMask mask = axis_mask(op, a.axes, x.ndim());
  for (int axis = 0; axis < mask.ndim; ++axis)
    if (mask[axis] && x.shape()[axis] != 1) return {};
  return reshape(x, out.shape);
}

Placed place_reduction(std::string_view op, const ReduceAttrs& a, const PlaceArgs& args, Placement across) {
  const AxisMask mask = axis_mask(op, a.axes, args.in[0].shape.ndim());
  const Placement at = args.at[0];
  if (at.is_split() && mask[at.axis] && !across.is_replicated()) return {{at}, {across}};
  // Where a reduced axis precedes the rows, the order of operations depends on the number of rows (ops/reduce/loops.h).
  if (args.by_parts && at.is_split() && std::any_of(mask.on.begin(), mask.on.begin() + at.axis, std::identity()))
    return gathered(args);
  std::array<int, kMaxDims> axis_out{};
  int next = 0;
  for (int axis = 0; axis < mask.ndim; ++axis) {
    axis_out[static_cast<std::size_t>(axis)] = mask[axis] ? -1 : next;
    if (a.keepdims || !mask[axis]) ++next;
  }
  return place_by_axis(args, axis_out, across.is_partial());
}

}  // namespace syncline
