// The reduced axes as a mask, and rules that reductions share (shape, simplify, placement).
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "ops/graph/op.h"

namespace syncline {

inline constexpr int kMaxDims = 16;  // kernels keep their geometry in arrays of this length, on the stack

struct AxisMask {
  std::array<bool, kMaxDims> on{};
  int ndim = 0;

  bool operator[](int axis) const { return on[static_cast<std::size_t>(axis)]; }
  std::span<const bool> span() const { return {on.data(), static_cast<std::size_t>(ndim)}; }
};

// Negative axes count from the end. Throws ValueError for an axis out of range or named twice, ShapeError for more than
// kMaxDims dimensions.
AxisMask axis_mask(std::string_view op, const std::vector<int>& axes, int ndim);
Shape reduced_shape(const Shape& shape, const AxisMask& mask, bool keepdims);

// A reduced value (dy or the result) with the reduced axes restored as ones, so that it broadcasts to the operand.
Expr with_kept_axes(const Expr& reduced, const std::vector<int>& axes, int operand_ndim, bool keepdims);

// The reduced axes, and whether they stay as ones.
struct ReduceAttrs {
  std::vector<int> axes;
  bool keepdims = false;
};
inline constexpr auto kReduceFields =
    std::tuple{field("axes", &ReduceAttrs::axes), field("keepdims", &ReduceAttrs::keepdims)};

// For `simplify`: a reduction over no axis, or only over axes of one element, as a reshape. Otherwise empty.
Expr reduced_nothing(std::string_view op, const ReduceAttrs& a, const Expr& x, const Meta& out);

// For reductions. `across`: what results of parts of a reduced axis are; replicated: they cannot be combined, so the
// operand is gathered. Other axes keep their split.
Placed place_reduction(std::string_view op, const ReduceAttrs& a, const PlaceArgs& args, Placement across);

}  // namespace syncline
