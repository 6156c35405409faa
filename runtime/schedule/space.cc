#include "runtime/schedule/space.h"

namespace syncline {

Space space_of(const Expr& e, const LocalView& local) {
  const Placement at = local.placement(e);
  return {e.shape(), at.is_split() ? at : Placement::replicated()};
}

bool is_strided_view(const Expr& e, const LocalView& local) {
  if (e.op().strided_view == nullptr) return false;
  const Shape& shape = e.shape();
  const StridedView view = e.op().strided_view(e.node().attrs.get(), e.input(0).meta());
  int axis = shape.ndim() - 1;
  while (axis > 0 && shape[axis] == 1) --axis;
  if (axis > 0 && local.placement(e).is_split(axis)) return false;
  return axis < 0 || shape[axis] == 1 || view.strides[static_cast<std::size_t>(axis)] == 1;
}

}  // namespace syncline
