// A tensor viewed along one axis: outer x length x inner, in C order.
#pragma once

#include "syncline/shape.h"

namespace syncline {

struct SlicesAlong {
  std::int64_t outer = 1, length = 1, inner = 1;
};

inline SlicesAlong slices_along(const Shape& shape, int axis) {
  return {shape.product(0, axis), shape[axis], shape.product(axis + 1, shape.ndim())};
}

}  // namespace syncline
