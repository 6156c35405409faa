// pick: one element of each lane, selected by an index; put_picked: its transpose, with 0 elsewhere.
#include <algorithm>

#include "ops/graph/deferred.h"
#include "ops/graph/op.h"
#include "ops/kernels/parallel.h"
#include "ops/shape/checked_index.h"
#include "syncline/backend/nn.h"

namespace syncline {
namespace {

Expr put_picked(const Expr& values, const Expr& index, int axis, std::int64_t depth);

void check_index(std::string_view op, const Shape& values, int axis, const Meta& index) {
  if (index.dtype != DType::kInt32 && index.dtype != DType::kInt64)
    fail<DTypeError>(op, ": index is ", index.dtype, "; cast it to int32 or int64");
  Shape lanes = index.shape;
  if (lanes.ndim() == values.ndim() + 1 && (lanes[axis] == 1 || lanes[axis] == kUnknown)) lanes.erase(axis);
  bool fits = lanes.ndim() == values.ndim();
  for (int i = 0; fits && i < lanes.ndim(); ++i)
    fits = lanes[i] == values[i] || lanes[i] == kUnknown || values[i] == kUnknown;
  if (!fits)
    fail<ShapeError>(op, ": index has the shape ", index.shape, ", but the lanes along axis ", axis, " are ", values,
                     "; give one index for each");
}

// Placements of the value with the axis (`full`), of the value without it (`lanes`), and of the index.
struct PickPlacement {
  Placement full, lanes, index;
};

PickPlacement follow_rows(const PlaceArgs& args, const Shape& full, int axis, Placement at, bool at_is_full) {
  const bool index_is_full = args.in[1].shape.ndim() == full.ndim();
  const auto widen = [&](int a) { return a < axis ? a : a + 1; };
  int along = -1;  // the split axis of the full value
  if (at.is_split()) along = at_is_full ? at.axis : widen(at.axis);
  else if (args.at[1].is_split()) along = index_is_full ? args.at[1].axis : widen(args.at[1].axis);
  if (along < 0 || along == axis) return {};
  const Placement narrow = Placement::split(along < axis ? along : along - 1);
  return {Placement::split(along), narrow, index_is_full ? Placement::split(along) : narrow};
}

struct Lanes {
  std::int64_t length, inner;
};

// Calls f(lane, position of its picked element in the full value) for all lanes. All indices must be in range.
template <class F>
void for_picked(const Shape& full, int axis, const KernelArgs& k, F f) {
  const Lanes l{full[axis], full.product(axis + 1, full.ndim())};
  with_index(k.in_dtype(1), [&]<class I>(I) {
    const I* index = k.input<I>(1);
    kernels::parallel_for(full.product(0, axis) * l.inner, 2.0, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t lane = begin; lane < end; ++lane) {
        const auto at = static_cast<std::int64_t>(index[lane]);
        f(lane, (lane / l.inner * l.length + at) * l.inner + lane % l.inner);
      }
    });
  });
}

struct Pick {
  static constexpr std::string_view kName = "pick";
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
    const PickPlacement p = follow_rows(args, full, wrap_axis(kName, a.axis, full.ndim()), args.at[0], true);
    return {{p.full, p.index}, {p.lanes}};
  }

  static void run(const Attrs& a, const KernelArgs& k) {
    const Shape& full = k.in_shape(0);
    with_stored_dtype(k.in_dtype(0), [&]<class T>(T) {
      const T* x = k.input<T>(0);
      T* y = k.output<T>();
      for_picked(full, wrap_axis(kName, a.axis, full.ndim()), k,
                 [=](std::int64_t lane, std::int64_t from) { y[lane] = x[from]; });
    });
  }

  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    const Shape& full = y.input(0).shape();
    const int axis = wrap_axis(kName, a.axis, full.ndim());
    return {with_numbers("gradient of pick", {dy, y.input(1)}, {dim(y.input(0), axis)}, y.input(0).meta(),
                         [axis](std::span<const Expr> operands, const Shape& depth) {
                           return put_picked(operands[0], operands[1], axis, depth[0]);
                         }),
            Expr{}};
  }
};

struct PutPicked {
  static constexpr std::string_view kName = "put_picked";
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
    const PickPlacement p = follow_rows(args, args.out[0].shape, a.axis, args.at[0], false);
    return {{p.lanes, p.index}, {p.full}};
  }

  static void run(const Attrs& a, const KernelArgs& k) {
    with_stored_dtype(k.out_dtype(), [&]<class T>(T) {
      const T* x = k.input<T>(0);
      T* y = k.output<T>();
      std::fill_n(y, k.out_shape().size(), T{});
      for_picked(k.out_shape(), a.axis, k, [=](std::int64_t lane, std::int64_t to) { y[to] = x[lane]; });
    });
  }

  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    return {pick(dy, y.input(1), a.axis), Expr{}};
  }
};

SYNCLINE_REGISTER_OP(Pick)
SYNCLINE_REGISTER_OP(PutPicked)

Expr put_picked(const Expr& values, const Expr& index, int axis, std::int64_t depth) {
  return apply<PutPicked>({values, index}, {axis, depth});
}

}  // namespace

Expr pick(const Expr& x, const Expr& index, int axis) {
  Pick::infer({axis}, std::vector{x.meta(), index.meta()});
  const Dim lane = dim(x, wrap_axis(Pick::kName, axis, x.ndim()));
  return apply<Pick>({x, checked_index(std::string(Pick::kName), index, lane)}, {axis});
}

}  // namespace syncline
