// sum(x, axes), and sum_like(dy, like), the gradient of broadcasting.
#include "ops/graph/deferred.h"
#include "ops/graph/elementwise.h"
#include "ops/reduce/kernel.h"
#include "syncline/backend/core.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

struct Sum : ReductionOp<Sum> {
  static constexpr std::string_view kName = "sum";
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    if (in[0].dtype == DType::kBool) fail<DTypeError>(kName, ": x is bool; cast it to a number first");
    return {in[0].dtype, reduced_shape(in[0].shape, axis_mask(kName, a.axes, in[0].shape.ndim()), a.keepdims)};
  }
  static Placed place(const Attrs& a, const PlaceArgs& args) {
    return place_reduction(kName, a, args, Placement::partial());
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    const Expr& x = y.input(0);
    return {broadcast_like(with_kept_axes(dy, a.axes, x.ndim(), a.keepdims), x)};
  }
};

void check_sum_like(const Shape& dy, const Shape& like) {
  bool fits = dy.ndim() >= like.ndim();
  for (int i = 1; fits && i <= like.ndim(); ++i) {
    const std::int64_t n = like[like.ndim() - i], wide = dy[dy.ndim() - i];
    fits = n == 1 || n == wide || n == kUnknown || wide == kUnknown;
  }
  if (!fits) fail<ShapeError>("sum_like: a value of shape ", dy, " was not broadcast from the shape ", like);
}

// 1 if a size `from` of dy was broadcast from the operand's size `own`, 0 if not, -1 if that is not known yet.
int was_broadcast(std::int64_t from, std::int64_t own) {
  if (own == from && own >= 0) return 0;
  if (own == 1) return 1;
  if (own >= 0 || from == 1) return 0;
  return -1;
}

// sum_like with known axes; empty while they depend on an unknown size.
Expr summed_like(const Expr& dy, const Shape& like) {
  check_sum_like(dy.shape(), like);
  const int extra = dy.ndim() - like.ndim();
  std::vector<int> axes, ones;
  for (int axis = 0; axis < extra; ++axis) axes.push_back(axis);
  for (int axis = 0; axis < like.ndim(); ++axis) {
    const int answer = was_broadcast(dy.shape()[axis + extra], like[axis]);
    if (answer < 0) return {};
    if (answer == 0) continue;
    axes.push_back(axis + extra);
    ones.push_back(axis);
  }
  if (axes.empty()) return dy;
  Expr total = sum(dy, axes);
  for (const int axis : ones) total = expand_dims(total, axis);
  return total;
}

SYNCLINE_REGISTER_OP(Sum)

}  // namespace

Expr sum(const Expr& x, Axes axes, bool keepdims) { return apply<Sum>({x}, {axes.of(x.ndim()), keepdims}); }

Expr sum_like(const Expr& dy, const Expr& like) {
  const Expr known = summed_like(dy, like.shape());
  if (known) return known;
  return once_known_like(
      "sum_like", {dy}, {like}, dy.dtype(),
      [](std::span<const Expr> in, std::span<const Shape> shapes) { return summed_like(in[0], shapes[0]); });
}

Expr unbroadcast(const Expr& dy, const Expr& like) { return sum_like(dy, like); }

}  // namespace syncline
