// permute_dimensions, transpose and reverse: the same elements in another order.
#include <algorithm>

#include "ops/kernels/copy/permute.h"
#include "ops/shape/strides.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

// The output's axis i is the operand's axis pattern[i]. Entries of the pattern are not negative.
struct Permute {
  static constexpr std::string_view kName = "permute_dimensions";
  static constexpr bool kMovesData = true;
  static constexpr bool kTakesFloat16 = true;
  struct Attrs {
    std::vector<int> pattern;
  };
  static constexpr auto fields = std::tuple{field("pattern", &Attrs::pattern)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    const Shape& x = in[0].shape;
    std::vector<int> sorted = a.pattern;
    std::sort(sorted.begin(), sorted.end());
    bool all = static_cast<int>(sorted.size()) == x.ndim() && x.ndim() <= kMaxDims;
    for (int axis = 0; all && axis < x.ndim(); ++axis) all = sorted[static_cast<std::size_t>(axis)] == axis;
    if (!all) {
      std::ostringstream pattern;
      attrs::print_to(pattern, a.pattern);
      fail<ShapeError>(kName, ": the pattern ", pattern.str(), " must name each of the ", x.ndim(), " axes of ", x,
                       " once");
    }
    Shape out;
    for (const int axis : a.pattern) out.push_back(x[axis]);
    return {in[0].dtype, out};
  }
  static Placed place(const Attrs& a, const PlaceArgs& args) { return place_by_axis(args, inverse(a.pattern), true); }
  static void run(const Attrs& a, const KernelArgs& k) {
    const Strides strides = strides_of(k.in_shape(0));
    Strides from{};
    for (std::size_t i = 0; i < a.pattern.size(); ++i) from[i] = strides[static_cast<std::size_t>(a.pattern[i])];
    kernels::strided_copy(k.out_shape().dims(), first(from, k.out_shape().ndim()), size_of(k.out_dtype()), k.in[0],
                          k.out[0]);
  }
  static Expr simplify(const Attrs& a, std::span<const Expr> in, const Meta& out) {
    if (in[0].is<Permute>()) {
      const std::vector<int>& before = in[0].attrs<Attrs>().pattern;
      std::vector<int> both;
      for (const int axis : a.pattern) both.push_back(before[static_cast<std::size_t>(axis)]);
      return apply<Permute>({in[0].input(0)}, {both});
    }
    int last = -1;
    for (const int axis : a.pattern) {
      if (in[0].shape()[axis] == 1) continue;  // its position changes nothing
      if (axis < last) return {};
      last = axis;
    }
    return reshape(in[0], out.shape);
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr&, const Expr& dy) {
    return {permute_dimensions(dy, inverse(a.pattern))};
  }
  static std::vector<int> inverse(const std::vector<int>& pattern) {
    std::vector<int> back(pattern.size());
    for (std::size_t i = 0; i < pattern.size(); ++i) back[static_cast<std::size_t>(pattern[i])] = static_cast<int>(i);
    return back;
  }
};

struct Reverse {
  static constexpr std::string_view kName = "reverse";
  static constexpr bool kMovesData = true;
  static constexpr bool kTakesFloat16 = true;
  struct Attrs {
    std::vector<int> axes;
  };
  static constexpr auto fields = std::tuple{field("axes", &Attrs::axes)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    axis_mask(kName, a.axes, in[0].shape.ndim());
    return in[0];
  }
  static Placed place(const Attrs& a, const PlaceArgs& args) {
    const AxisMask mask = axis_mask(kName, a.axes, args.in[0].shape.ndim());
    std::vector<int> axis_out;
    for (int axis = 0; axis < mask.ndim; ++axis) axis_out.push_back(mask[axis] ? -1 : axis);
    return place_by_axis(args, axis_out, /*linear=*/true);
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const Shape& shape = k.in_shape(0);
    if (shape.size() == 0) return;
    const AxisMask mask = axis_mask(kName, a.axes, shape.ndim());
    Strides strides = strides_of(shape);
    std::int64_t start = 0;
    for (int axis = 0; axis < shape.ndim(); ++axis) {
      if (!mask[axis]) continue;
      std::int64_t& stride = strides[static_cast<std::size_t>(axis)];
      start += stride * (shape[axis] - 1);
      stride = -stride;
    }
    const std::size_t size = size_of(k.out_dtype());
    kernels::strided_copy(shape.dims(), first(strides, shape.ndim()), size,
                          k.input<std::byte>(0) + static_cast<std::size_t>(start) * size, k.out[0]);
  }
  static Expr simplify(const Attrs& a, std::span<const Expr> in, const Meta&) {
    return a.axes.empty() ? in[0] : Expr{};
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr&, const Expr& dy) { return {reverse(dy, a.axes)}; }
};

SYNCLINE_REGISTER_OP(Permute)
SYNCLINE_REGISTER_OP(Reverse)

}  // namespace

Expr permute_dimensions(const Expr& x, std::vector<int> pattern) {
  for (int& axis : pattern) axis = wrap_axis(Permute::kName, axis, x.ndim());
  return apply<Permute>({x}, {std::move(pattern)});
}
Expr transpose(const Expr& x) {
  std::vector<int> pattern;
  for (int axis = x.ndim() - 1; axis >= 0; --axis) pattern.push_back(axis);
  return apply<Permute>({x}, {std::move(pattern)});
}
Expr reverse(const Expr& x, Axes axes) {
  if (axes.are_all()) fail<ValueError>(Reverse::kName, ": no axes are given; give the axes to reverse");
  return apply<Reverse>({x}, {axes.of(x.ndim())});
}

}  // namespace syncline
