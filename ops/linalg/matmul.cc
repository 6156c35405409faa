// The matrix product over the last two axes, for each place along the axes before them.
#include "ops/dims.h"
#include "ops/linalg.h"
#include "ops/shape.h"

namespace syncline {
namespace {

// The last two axes of x behind as many axes as `leading` names.
Expr with_leading(const Expr& x, Dims leading) {
  leading.append(dim(x, x.ndim() - 2));
  leading.append(dim(x, x.ndim() - 1));
  return reshape(x, leading);
}

// The last two axes swapped.
Expr turned(const Expr& x) {
  std::vector<int> pattern;
  for (int axis = 0; axis < x.ndim() - 2; ++axis) pattern.push_back(axis);
  pattern.insert(pattern.end(), {x.ndim() - 1, x.ndim() - 2});
  return permute_dimensions(x, pattern);
}

void check_leading(const Expr& x, const Expr& y) {
  bool fits = x.ndim() == y.ndim();
  for (int axis = 0; fits && axis < x.ndim() - 2; ++axis) {
    const std::int64_t a = x.shape()[axis], b = y.shape()[axis];
    fits = a == b || a == kUnknown || b == kUnknown;
  }
  if (!fits)
    fail<ShapeError>("matmul: x is ", x.shape(), " and y is ", y.shape(),
                     "; the axes before the last two must be alike, or one operand must be a matrix");
}

}  // namespace

Expr matmul(const Expr& x, const Expr& y) {
  if (y.ndim() <= 2) return dot(x, y);
  if (x.ndim() == 3 && y.ndim() == 3 && y.shape()[0] == 1) return dot(x, squeeze(y, 0));
  if (x.ndim() == 3 && y.ndim() == 3 && x.shape()[0] == 1) return matmul(squeeze(x, 0), y);
  if (x.ndim() == 2) return turned(dot(turned(y), turned(x)));
  check_leading(x, y);
  if (x.ndim() == 3) return batch_dot(x, y, {2, 1});
  const Expr product = batch_dot(with_leading(x, Dims{-1}), with_leading(y, Dims{-1}), {2, 1});
  Dims leading;
  for (int axis = 0; axis < x.ndim() - 2; ++axis) leading.append(dim(x, axis));
  return with_leading(product, leading);
}

}  // namespace syncline
