// identity, stop_gradient, shape and count, which are in no plan; and fill.
#include "syncline/backend/core.h"
#include "ops/graph/deferred.h"

#include "ops/graph/fill.h"
#include "ops/graph/leaf.h"
#include "ops/graph/op.h"
#include "ops/sparse/tensor.h"
#include "syncline/backend/sparse.h"

namespace syncline {
namespace {

struct Identity : WithoutAttrs {
  static constexpr std::string_view kName = "identity";
  static constexpr bool kView = true;
  static Meta infer(const Attrs&, std::span<const Meta> in) { return in[0]; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_linear(args); }
  static Expr simplify(const Attrs&, std::span<const Expr> in, const Meta&) { return in[0]; }
  static std::vector<Expr> grad(const Attrs&, const Expr&, const Expr& dy) { return {dy}; }
};

struct StopGradient : Identity {
  static constexpr std::string_view kName = "stop_gradient";
  static constexpr NoGradient grad{"it stops gradients by definition"};
};

struct ShapeOf : WithoutAttrs {
  static constexpr std::string_view kName = "shape";
  static constexpr bool kShapeOnly = true;
  static Meta infer(const Attrs&, std::span<const Meta> in) { return {DType::kInt32, Shape{in[0].shape.ndim()}}; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static Expr simplify(const Attrs&, std::span<const Expr> in, const Meta&) {
    const Shape& shape = in[0].shape();
    if (!shape.is_known()) return {};
    std::vector<std::int32_t> dims(shape.begin(), shape.end());
    return constant_of(Array::from<std::int32_t>(Shape{shape.ndim()}, dims));
  }
  static KnownElements known_elements(const Attrs&, std::span<const Expr> in, std::span<const KnownElements>) {
    KnownElements sizes;
    for (const std::int64_t size : in[0].shape()) sizes.push_back(size < 0 ? std::nullopt : std::optional(size));
    return sizes;
  }
  static constexpr NoGradient grad{"a shape does not depend on values"};
};

struct Count {
  static constexpr std::string_view kName = "count";
  static constexpr bool kShapeOnly = true;
  struct Attrs {
    std::vector<int> axes;
    DType dtype = DType::kFloat32;
  };
  static constexpr auto fields = std::tuple{field("axes", &Attrs::axes), field("dtype", &Attrs::dtype)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    for (const int axis : a.axes) wrap_axis(kName, axis, in[0].shape.ndim());
    return {a.dtype, Shape{}};
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static Expr simplify(const Attrs& a, std::span<const Expr> in, const Meta&) {
    const Shape& shape = in[0].shape();
    std::int64_t total = 1;
    for (int axis = 0; axis < shape.ndim(); ++axis) {
      bool counted = false;
      for (const int wanted : a.axes) counted |= wrap_axis(kName, wanted, shape.ndim()) == axis;
      if (!counted) continue;
      if (shape[axis] < 0) return {};
      total *= shape[axis];
    }
    return scalar(static_cast<double>(total), a.dtype);
  }
  static constexpr NoGradient grad{"a number of elements does not depend on values"};
};

SYNCLINE_REGISTER_OP(Identity)
SYNCLINE_REGISTER_OP(StopGradient)
SYNCLINE_REGISTER_OP(ShapeOf)
SYNCLINE_REGISTER_OP(Count)

}  // namespace

Expr fill(const Dims& shape, double value, DType dtype) {
  return with_numbers("fill", {}, shape, {dtype, shape.numbers()}, [=](std::span<const Expr>, const Shape& numbers) {
    if (!numbers.is_known())
      fail<ShapeError>("fill: the shape ", numbers,
                       " has a size that is negative or unknown; give sizes of 0 or more, or ",
                       "use zeros_like, ones_like or fill_like with a tensor, whose shape may be unknown");
    return apply<Fill>({}, {value, dtype, numbers});
  });
}
static Expr named_fill_like(const Expr& x, double value, const TensorOptions& options) {
  const Expr y = fill_like(x, value, options.dtype.value_or(x.dtype()));
  return options.name.empty() ? y : identity(y, options.name);
}
Expr fill_like(const Expr& x, double value) { return fill_like(x, value, x.dtype()); }
Expr fill_like(const Expr& x, double value, DType dtype) {
  return once_known_like("fill_like", {}, {x}, dtype, [=](std::span<const Expr>, std::span<const Shape> like) {
    return apply<Fill>({}, {value, dtype, like[0]});
  });
}
Expr zeros_like(const Expr& x, const TensorOptions& options) { return named_fill_like(x, 0, options); }
Expr ones_like(const Expr& x, const TensorOptions& options) { return named_fill_like(x, 1, options); }
Expr identity(const Expr& x, std::string name) { return is_sparse(x) ? x : apply<Identity>({x}, {}, std::move(name)); }
Expr stop_gradient(const Expr& x) { return apply<StopGradient>({x}); }
std::vector<Expr> stop_gradient(std::vector<Expr> tensors) {
  for (Expr& x : tensors) x = stop_gradient(x);
  return tensors;
}

bool is_variable_tensor(const Expr& x) {
  return x && (x.is<VariableLeaf>() || (is_sparse(x) && sparse_values(x).is<VariableLeaf>()));
}
std::int64_t count_params(const Expr& x) {
  if (!x.shape().is_known())
    fail<ShapeError>("count_params: x ", x.shape(), " has an unknown dimension; count(x) gives the number as a tensor");
  return x.shape().size();
}
// shape and count are in no plan, so no step computes to_dense for them.
Expr shape(const Expr& x) { return apply<ShapeOf>({to_dense(x)}); }
Expr count(const Expr& tensor, Axes axes, DType dtype) {
  const Expr x = to_dense(tensor);
  const Expr counted = apply<Count>({x}, {axes.of(x.ndim()), dtype});
  const Expr known = Count::simplify(counted.attrs<Count::Attrs>(), {&x, 1}, counted.meta());
  return known ? known : counted;
}

}  // namespace syncline
