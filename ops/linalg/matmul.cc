// matmul: matrix products over the last two axes, broadcast over the leading axes.
#include <algorithm>

#include "ops/graph/deferred.h"
#include "syncline/backend/core.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/shape.h"
#include "syncline/dims.h"

namespace syncline {
namespace {

// Reshapes x to the axes `leading` and its last two axes.
Expr with_leading(const Expr& x, Dims leading) {
  leading.append(dim(x, x.ndim() - 2));
  leading.append(dim(x, x.ndim() - 1));
  return reshape(x, leading);
}

// Swaps the last two axes.
Expr transposed(const Expr& x) {
  std::vector<int> pattern;
  for (int axis = 0; axis < x.ndim() - 2; ++axis) pattern.push_back(axis);
  pattern.insert(pattern.end(), {x.ndim() - 1, x.ndim() - 2});
  return permute_dimensions(x, pattern);
}

// The shape of the product. Throws ShapeError.
Shape product_shape(const Shape& x, const Shape& y) {
  const auto broadcasts = [](std::int64_t a, std::int64_t b) { return a == b || a == 1 || b == 1 || a < 0 || b < 0; };
  const int ndim = std::max(x.ndim(), y.ndim());
  const std::int64_t inner = y[y.ndim() - 2];
  bool fits = x.back() == inner || x.back() < 0 || inner < 0;
  Shape a = x, b = y;
  while (a.ndim() < ndim) a.insert(0, 1);
  while (b.ndim() < ndim) b.insert(0, 1);
  for (int axis = 0; axis < ndim - 2; ++axis) fits = fits && broadcasts(a[axis], b[axis]);
  if (!fits)
    fail<ShapeError>("matmul: x is ", x, " and y is ", y,
                     "; the last axis of x must be as long as the second-to-last axis of y, ",
                     "and the axes before the last two must broadcast");
  a[ndim - 1] = b[ndim - 2] = 1;
  return broadcast("matmul", a, b);
}

// Broadcasts the leading axes of x to those of `shape`.
Expr spread(const Expr& x, Shape shape) {
  shape[shape.ndim() - 2] = x.shape()[x.ndim() - 2];
  shape[shape.ndim() - 1] = x.shape().back();
  return broadcast_like(x, fill(shape, 0, x.dtype()));
}

// For known shapes of three or more axes: merges the leading axes into the samples of batch_dot.
Expr place_by_place(const Expr& x, const Expr& y) {
  const Shape shape = product_shape(x.shape(), y.shape());
  const Dims places{shape.product(0, shape.ndim() - 2)};
  const Expr product =
      batch_dot(with_leading(spread(x, shape), places), with_leading(spread(y, shape), places), {2, 1});
  return reshape(product, shape);
}

}  // namespace

Expr matmul(const Expr& x, const Expr& y) {
  if (y.ndim() <= 2 || x.ndim() == 0) return dot(x, y);
  if (x.ndim() == 1) return squeeze(matmul(expand_dims(x, 0), y), -2);
  if (x.ndim() == 3 && y.ndim() == 3 && y.shape()[0] == 1) return dot(x, squeeze(y, 0));
  if (x.ndim() == 3 && y.ndim() == 3 && x.shape()[0] == 1) return matmul(squeeze(x, 0), y);
  if (x.ndim() == 2) return transposed(dot(transposed(y), transposed(x)));
  if (x.dtype() != y.dtype())
    fail<DTypeError>("matmul: operands of ", x.dtype(), " and ", y.dtype(), "; cast one of them");
  return once_known("matmul", {x, y}, {x.dtype(), product_shape(x.shape(), y.shape())},
                    [](std::span<const Expr> in) { return place_by_place(in[0], in[1]); });
}

}  // namespace syncline
