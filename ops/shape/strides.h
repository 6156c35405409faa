// Strides, in elements, of C-ordered shapes, in arrays on the stack.
#pragma once

#include <array>

#include "ops/reduce/axes.h"

namespace syncline {

using Strides = std::array<std::int64_t, kMaxDims>;

inline Strides strides_of(const Shape& shape) {
  Strides strides{};
  std::int64_t stride = 1;
  for (int axis = shape.ndim() - 1; axis >= 0; --axis) {
    strides[static_cast<std::size_t>(axis)] = stride;
    stride *= shape[axis];
  }
  return strides;
}

inline std::span<const std::int64_t> first(const Strides& strides, int ndim) {
  return {strides.data(), static_cast<std::size_t>(ndim)};
}

}  // namespace syncline
