// gather_along_axis: one element of each slice, selected by an index; scatter_along_axis: its transpose, with 0
// elsewhere.
#include <algorithm>

#include "ops/graph/deferred.h"
#include "ops/graph/op.h"
#include "ops/kernels/parallel.h"
#include "ops/reduce/slices_along.h"
#include "ops/shape/checked_index.h"
#include "syncline/backend/nn.h"

namespace syncline {
namespace {

Expr scatter_along_axis(const Expr& values, const Expr& index, int axis, std::int64_t depth);

void check_index(std::string_view op, const Shape& values, int axis, const Meta& index) {
  if (index.dtype != DType::kInt32 && index.dtype != DType::kInt64)
    fail<DTypeError>(op, ": index is ", index.dtype, "; cast it to int32 or int64");
  Shape slices = index.shape;
  if (slices.ndim() == values.ndim() + 1 && (slices[axis] == 1 || slices[axis] == kUnknown)) slices.erase(axis);
  bool fits = slices.ndim() == values.ndim();
  for (int i = 0; fits && i < slices.ndim(); ++i)
    fits = slices[i] == values[i] || slices[i] == kUnknown || values[i] == kUnknown;
  if (!fits)
    fail<ShapeError>(op, ": index has the shape ", index.shape, ", but the slices along axis ", axis, " are ", values,
                     "; give one index for each");
}

// Placements of the value with the axis (`full`), of the value without it (`slices`), and of the index.
struct GatherPlacement {
  Placement full, slices, index;
};

GatherPlacement follow_rows(const PlaceArgs& args, const Shape& full, int axis, Placement at, bool at_is_full) {
  const bool index_is_full = args.in[1].shape.ndim() == full.ndim();
  const auto widen = [&](int a) { return a < axis ? a : a + 1; };
  int along = -1;  // the split axis of the full value
  if (at.is_split()) along = at_is_full ? at.axis : widen(at.axis);
  else if (args.at[1].is_split()) along = index_is_full ? args.at[1].axis : widen(args.at[1].axis);
  if (along < 0 || along == axis) return {};
  const Placement narrow = Placement::split(along < axis ? along : along - 1);
  return {Placement::split(along), narrow, index_is_full ? Placement::split(along) : narrow};
}

// Calls f(slice, position of its selected element in the full value) for all slices. All indices must be in range.
template <class F>
void for_gathered(const Shape& full, int axis, const KernelArgs& k, F f) {
  const SlicesAlong l = slices_along(full, axis);
  with_index(k.in_dtype(1), [&]<class I>(I) {
    const I* index = k.input<I>(1);
    kernels::parallel_for(l.outer * l.inner, 2.0, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t slice = begin; slice < end; ++slice) {
        const auto at = static_cast<std::int64_t>(index[slice]);
        f(slice, (slice / l.inner * l.length + at) * l.inner + slice % l.inner);
      }
    });
  });
}

struct GatherAlongAxis {
  static constexpr std::string_view kName = "gather_along_axis";
  static constexpr bool kMovesData = true;
  static constexpr bool kTakesFloat16 = true;
  struct Attrs {
    int axis = -1;
  };
  static constexpr auto fields = std::tuple{field("axis", &Attrs::axis)};

  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    Meta out = in[0];
    const int axis = wrap_axis(kName, a.axis, out.shape.ndim());
    out.shape.erase(axis);
    check_index(kName, out.shape, axis, in[1]);
    return out;
  }

  static Placed place(const Attrs& a, const PlaceArgs& args) {
    const Shape& full = args.in[0].shape;
    const GatherPlacement p = follow_rows(args, full, wrap_axis(kName, a.axis, full.ndim()), args.at[0], true);
    return {{p.full, p.index}, {p.slices}};
  }

  static void run(const Attrs& a, const KernelArgs& k) {
    const Shape& full = k.in_shape(0);
    with_stored_dtype(k.in_dtype(0), [&]<class T>(T) {
      const T* x = k.input<T>(0);
      T* y = k.output<T>();
      for_gathered(full, wrap_axis(kName, a.axis, full.ndim()), k,
                   [=](std::int64_t slice, std::int64_t from) { y[slice] = x[from]; });
    });
  }

  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    const Shape& full = y.input(0).shape();
    const int axis = wrap_axis(kName, a.axis, full.ndim());
    return {with_numbers("gradient of gather_along_axis", {dy, y.input(1)}, {dim(y.input(0), axis)}, y.input(0).meta(),
                         [axis](std::span<const Expr> operands, const Shape& depth) {
                           return scatter_along_axis(operands[0], operands[1], axis, depth[0]);
                         }),
            Expr{}};
  }
};

struct ScatterAlongAxis {
  static constexpr std::string_view kName = "scatter_along_axis";
  static constexpr bool kMovesData = true;
  static constexpr bool kTakesFloat16 = true;
  struct Attrs {
    int axis = 0;  // of the result
    std::int64_t depth = 0;
  };
  static constexpr auto fields = std::tuple{field("axis", &Attrs::axis), field("depth", &Attrs::depth)};

  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    check_index(kName, in[0].shape, a.axis, in[1]);
    Meta out = in[0];
    out.shape.insert(a.axis, a.depth);
    return out;
  }

  static Placed place(const Attrs& a, const PlaceArgs& args) {
    const GatherPlacement p = follow_rows(args, args.out[0].shape, a.axis, args.at[0], false);
    return {{p.slices, p.index}, {p.full}};
  }

  static void run(const Attrs& a, const KernelArgs& k) {
    with_stored_dtype(k.out_dtype(), [&]<class T>(T) {
      const T* x = k.input<T>(0);
      T* y = k.output<T>();
      std::fill_n(y, k.out_shape().size(), T{});
      for_gathered(k.out_shape(), a.axis, k, [=](std::int64_t slice, std::int64_t to) { y[to] = x[slice]; });
    });
  }

  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    return {gather_along_axis(dy, y.input(1), a.axis), Expr{}};
  }
};

SYNCLINE_REGISTER_OP(GatherAlongAxis)
SYNCLINE_REGISTER_OP(ScatterAlongAxis)

Expr scatter_along_axis(const Expr& values, const Expr& index, int axis, std::int64_t depth) {
  return apply<ScatterAlongAxis>({values, index}, {axis, depth});
}

}  // namespace

Expr gather_along_axis(const Expr& x, const Expr& index, int axis) {
  GatherAlongAxis::infer({axis}, std::vector{x.meta(), index.meta()});
  const Dim depth = dim(x, wrap_axis(GatherAlongAxis::kName, axis, x.ndim()));
  return apply<GatherAlongAxis>({x, checked_index(std::string(GatherAlongAxis::kName), index, depth)}, {axis});
}

}  // namespace syncline
