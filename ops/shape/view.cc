// Views: reshape, expand_dims, squeeze and functions built on them. They compute nothing; only `place` matters.
#include <algorithm>

#include "ops/graph/deferred.h"
#include "ops/graph/op.h"
#include "ops/shape/merge.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

// A split stays if an axis of the output is cut at the same elements.
Placed place_reshaped(const PlaceArgs& args) {
  Placed placed = gathered(args);
  const Placement at = args.at[0];
  if (at.is_partial()) {
    placed.in[0] = placed.out[0] = at;
  } else if (at.is_split()) {
    const int axis = reshaped_axis(args.in[0].shape, at.axis, args.out[0].shape, args.rows);
    if (axis >= 0) {
      placed.in[0] = at;
      placed.out[0] = Placement::split(axis);
    }
  }
  return placed;
}

std::int64_t known_product(const Shape& shape) {
  std::int64_t product = 1;
  for (const std::int64_t dim : shape)
    if (dim >= 0) product = size_product("reshape", product, dim);
  return product;
}

struct Reshape {
  static constexpr std::string_view kName = "reshape";
  struct Attrs {
    Shape shape;
  };
  static constexpr auto fields = std::tuple{field("shape", &Attrs::shape)};
  static constexpr bool kView = true;
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    const Shape& from = in[0].shape;
    const auto open = std::count_if(a.shape.begin(), a.shape.end(), [](auto dim) { return dim < 0; });
    if (open > 1)
      fail<ShapeError>(kName, ": the target ", a.shape, " leaves ", open, " dimensions unknown; give all but one");
    if (!from.is_known()) return {in[0].dtype, a.shape};
    const std::int64_t total = from.size(), fixed = known_product(a.shape);
    const bool fits = open == 0 ? fixed == total : fixed != 0 && total % fixed == 0;
    if (!fits)
      fail<ShapeError>(kName, ": ", from, " has ", total, " elements, which do not fit the target ", a.shape,
                       "; the products of both shapes must be equal");
    Shape out = a.shape;
    for (int axis = 0; axis < out.ndim(); ++axis)
      if (out[axis] < 0) out[axis] = total / fixed;
    return {in[0].dtype, out};
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_reshaped(args); }
  static Expr simplify(const Attrs& a, std::span<const Expr> in, const Meta& out) {
    if (in[0].shape().is_known() && in[0].shape() == out.shape) return in[0];
    if (in[0].is<Reshape>()) return apply<Reshape>({in[0].input(0)}, a);
    return {};
  }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy) { return {reshape_like(dy, y.input(0))}; }
};

struct AxisAttrs {
  int axis = 0;
};

struct ExpandDims {
  static constexpr std::string_view kName = "expand_dims";
  using Attrs = AxisAttrs;
  static constexpr auto fields = std::tuple{field("axis", &Attrs::axis)};
  static constexpr bool kView = true;
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    Meta out = in[0];
    out.shape.insert(wrap_axis(kName, a.axis, in[0].shape.ndim() + 1), 1);
    return out;
  }
  static Placed place(const Attrs& a, const PlaceArgs& args) {
    const int added = wrap_axis(kName, a.axis, args.out[0].shape.ndim());
    std::vector<int> axis_out;
    for (int axis = 0; axis < args.in[0].shape.ndim(); ++axis) axis_out.push_back(axis < added ? axis : axis + 1);
    return place_by_axis(args, axis_out, /*linear=*/true);
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    return {squeeze(dy, wrap_axis(kName, a.axis, y.ndim()))};
  }
};

struct Squeeze {
  static constexpr std::string_view kName = "squeeze";
  using Attrs = AxisAttrs;
  static constexpr auto fields = std::tuple{field("axis", &Attrs::axis)};
  static constexpr bool kView = true;
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    const int axis = wrap_axis(kName, a.axis, in[0].shape.ndim());
    if (in[0].shape[axis] > 1 || in[0].shape[axis] == 0)
      fail<ShapeError>(kName, ": axis ", a.axis, " of ", in[0].shape, " has ", in[0].shape[axis],
                       " elements; only an axis of one can be dropped");
    Meta out = in[0];
    out.shape.erase(axis);
    return out;
  }
  static Placed place(const Attrs& a, const PlaceArgs& args) {
    const int dropped = wrap_axis(kName, a.axis, args.in[0].shape.ndim());
    std::vector<int> axis_out;
    for (int axis = 0; axis < args.in[0].shape.ndim(); ++axis)
      axis_out.push_back(axis == dropped ? -1 : axis < dropped ? axis : axis - 1);
    return place_by_axis(args, axis_out, /*linear=*/true);
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    return {expand_dims(dy, wrap_axis(kName, a.axis, y.input(0).ndim()))};
  }
};

SYNCLINE_REGISTER_OP(Reshape)
SYNCLINE_REGISTER_OP(ExpandDims)
SYNCLINE_REGISTER_OP(Squeeze)

// True if reshape can determine all sizes of the target `shape`: at most one is unknown.
bool is_target(const Shape& shape) {
  const auto open = std::count_if(shape.begin(), shape.end(), [](auto dim) { return dim < 0; });
  return open == 0 || (open == 1 && known_product(shape) > 0);
}

}  // namespace

static void check_target(const Shape& to) {
  for (const std::int64_t size : to)
    if (size < kUnknown)
      fail<ShapeError>("reshape: the target has the size ", size,
                       "; give sizes of 0 or more, and at most one -1, which is computed");
}

Expr reshape(const Expr& x, const Dims& shape) {
  check_target(shape.numbers());
  return with_numbers("reshape", {x}, shape, {x.dtype(), shape.numbers()},
                      [](std::span<const Expr> operands, const Shape& to) {
                        check_target(to);
                        const Expr& from = operands[0];
                        return from.shape().is_known() && from.shape() == to ? from : apply<Reshape>({from}, {to});
                      });
}
Expr reshape_like(const Expr& x, const Expr& like) {
  if (is_target(like.shape())) return reshape(x, like.shape());
  return once_known_like(
      "reshape_like", {x}, {like}, x.dtype(),
      [](std::span<const Expr> in, std::span<const Shape> shapes) { return reshape(in[0], shapes[0]); });
}
Expr expand_dims(const Expr& x, int axis) { return apply<ExpandDims>({x}, {axis}); }
Expr squeeze(const Expr& x, int axis) { return apply<Squeeze>({x}, {axis}); }
Expr flatten(const Expr& x) { return reshape(x, Shape{-1}); }
Expr batch_flatten(const Expr& x) {
  if (x.ndim() < 1) fail<ShapeError>("batch_flatten: x is a scalar; it needs an axis of samples");
  if (x.ndim() == 1) return expand_dims(x, 1);
  Expr flat = x;
  while (flat.ndim() > 2) flat = merge_axes(flat, 1);
  return is_target(flat.shape()) ? reshape(x, flat.shape()) : flat;
}

static Shape merged(Shape shape, int axis) {
  const std::int64_t size = size_product("merge_axes", shape[axis], shape[axis + 1]);
  shape.erase(axis);
  shape[axis] = size;
  return shape;
}

Expr merge_axes(const Expr& x, int axis) {
  return once_known("merge_axes", {x}, {x.dtype(), merged(x.shape(), axis)},
                    [axis](std::span<const Expr> in) { return reshape(in[0], merged(in[0].shape(), axis)); });
}

}  // namespace syncline
