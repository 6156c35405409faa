// repeat, repeat_elements and tile: an axis of one element stretched, then merged with a neighbour.
#include "ops/kernels/permute.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "ops/shape/merge.h"
#include "ops/shape/strides.h"

namespace syncline {
namespace {

struct Stretch {
  static constexpr std::string_view kName = "stretch";
  struct Attrs {
    int axis = 0;
    int n = 1;
  };
  static constexpr auto fields = std::tuple{field("axis", &Attrs::axis), field("n", &Attrs::n)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    Meta out = in[0];
    if (out.shape.ndim() > kMaxDims || a.n < 0 || out.shape[a.axis] != 1)
      fail<ShapeError>(kName, ": axis ", a.axis, " of ", out.shape, " cannot be repeated ", a.n, " times");
    out.shape[a.axis] = a.n;
    return out;
  }
  static Placed place(const Attrs&, const PlaceArgs& args) {
    std::vector<int> axis_out;
    for (int axis = 0; axis < args.in[0].shape.ndim(); ++axis) axis_out.push_back(axis);
    return place_by_axis(args, axis_out, /*linear=*/true);
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    Strides strides = strides_of(k.in_shape(0));
    strides[static_cast<std::size_t>(a.axis)] = 0;
    kernels::strided_copy(k.out_shape().dims(), first(strides, k.out_shape().ndim()), size_of(k.out_dtype()), k.in[0],
                          k.out[0]);
  }
  static Expr simplify(const Attrs& a, std::span<const Expr> in, const Meta&) { return a.n == 1 ? in[0] : Expr{}; }
  static std::vector<Expr> grad(const Attrs& a, const Expr&, const Expr& dy) {
    return {sum(dy, {a.axis}, /*keepdims=*/true)};
  }
};

SYNCLINE_REGISTER_OP(Stretch)

void check_times(std::string_view op, int n) {
  if (n < 0) fail<ValueError>(op, ": ", n, " repetitions; the number must not be negative");
}

}  // namespace

Expr repeat_elements(const Expr& x, int rep, int axis) {
  check_times("repeat_elements", rep);
  const int at = wrap_axis("repeat_elements", axis, x.ndim());
  return merge_axes(apply<Stretch>({expand_dims(x, at + 1)}, {at + 1, rep}), at);
}

Expr repeat(const Expr& x, int n) {
  check_times("repeat", n);
  if (x.ndim() != 2) fail<ShapeError>("repeat: x ", x.shape(), " must be (samples, dim)");
  return apply<Stretch>({expand_dims(x, 1)}, {1, n});
}

Expr tile(const Expr& x, std::vector<int> n) {
  if (static_cast<int>(n.size()) > x.ndim())
    fail<ShapeError>("tile: ", n.size(), " numbers for x ", x.shape(), ", which has ", x.ndim(), " axes");
  Expr tiled = x;
  for (std::size_t i = 0; i < n.size(); ++i) {
    check_times("tile", n[i]);
    const int axis = x.ndim() - static_cast<int>(n.size() - i);
    if (n[i] != 1) tiled = merge_axes(apply<Stretch>({expand_dims(tiled, axis)}, {axis, n[i]}), axis);
  }
  return tiled;
}

}  // namespace syncline
