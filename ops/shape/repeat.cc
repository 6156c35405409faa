// repeat, repeat_elements and tile: they broadcast an axis of one element; the last two merge it with a neighbour.
#include "ops/graph/deferred.h"
#include "ops/kernels/copy/permute.h"
#include "ops/shape/merge.h"
#include "ops/shape/strides.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

struct BroadcastAxis {
  static constexpr std::string_view kName = "broadcast_axis";
  static constexpr bool kMovesData = true;
  static constexpr bool kTakesFloat16 = true;
  struct Attrs {
    int axis = 0;
    std::int64_t n = 1;
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

SYNCLINE_REGISTER_OP(BroadcastAxis)

void check_times(std::string_view op, std::int64_t n) {
  if (n < 0) fail<ValueError>(op, ": the number of repetitions is ", n, "; it must not be negative");
}

}  // namespace

Expr repeat_elements(const Expr& x, int rep, int axis) {
  check_times("repeat_elements", rep);
  const int at = wrap_axis("repeat_elements", axis, x.ndim());
  return merge_axes(apply<BroadcastAxis>({expand_dims(x, at + 1)}, {at + 1, rep}), at);
}

Expr repeat(const Expr& x, const Dim& n) {
  if (x.ndim() != 2) fail<ShapeError>("repeat: x ", x.shape(), " must be (samples, dim)");
  const Meta unknown{x.dtype(), {x.shape()[0], kUnknown, x.shape()[1]}};
  return with_numbers("repeat", {x}, Dims::of_numbers("repeat", {n}), unknown,
                      [](std::span<const Expr> operands, const Shape& numbers) {
                        check_times("repeat", numbers[0]);
                        return apply<BroadcastAxis>({expand_dims(operands[0], 1)}, {1, numbers[0]});
                      });
}

Expr tile(const Expr& x, const Dims& n) {
  if (n.size() > x.ndim())
    fail<ShapeError>("tile: n has ", n.size(), " numbers, but x ", x.shape(), " has only ", x.ndim(), " axes");
  const int lead = x.ndim() - n.size();
  Meta unknown = x.meta();
  for (int i = 0; i < n.size(); ++i) {
    std::int64_t& size = unknown.shape[lead + i];
    if (!n.is_tensor(i)) check_times("tile", n.numbers()[i]);
    size = n.is_tensor(i) ? kUnknown : size_product("tile", size, n.numbers()[i]);
  }
  return with_numbers("tile", {x}, n, unknown, [lead](std::span<const Expr> operands, const Shape& times) {
    Expr tiled = operands[0];
    for (int i = 0; i < times.ndim(); ++i) {
      check_times("tile", times[i]);
      const int axis = lead + i;
      if (times[i] != 1) tiled = merge_axes(apply<BroadcastAxis>({expand_dims(tiled, axis)}, {axis, times[i]}), axis);
    }
    return tiled;
  });
}

}  // namespace syncline
