// index: NumPy's x[...], as a strided slice, views and gathers. The gradient of a strided slice is StridedPad, which
// puts the slice back into zeros.
#include <algorithm>
#include <limits>

#include "ops/graph/deferred.h"
#include "ops/graph/leaf.h"
#include "ops/kernels/copy/bytes.h"
#include "ops/kernels/copy/permute.h"
#include "ops/kernels/copy/strided_copy.h"
#include "ops/shape/strides.h"
#include "syncline/backend/core.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

using Numbers = std::vector<std::int64_t>;

constexpr std::int64_t kOpen = std::numeric_limits<std::int64_t>::min();  // an omitted bound

// start : stop : step for each axis, as in NumPy. An axis with `picked` set (an integer subscript) gives one element.
struct CutAttrs {
  Numbers start, stop, step;
  std::vector<int> picked;
};

// The elements cut out of an axis of known size: begin, begin + step, ...
struct Cut {
  std::int64_t begin = 0, count = 0, step = 1;
};

Cut cut_of(const CutAttrs& a, int axis, std::int64_t size) {
  const auto i = static_cast<std::size_t>(axis);
  const std::int64_t step = a.step[i], low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto bound = [&](std::int64_t given, std::int64_t open) {
    return given == kOpen ? open : std::clamp(given < 0 ? given + size : given, low, high);
  };
  const std::int64_t begin = bound(a.start[i], step > 0 ? low : high), end = bound(a.stop[i], step > 0 ? high : low);
  const std::int64_t distance = step > 0 ? end - begin : begin - end;
  if (distance <= 0) return {begin, 0, 1};
  // Such a step takes one element. Step 1 replaces it, because products with a large step may overflow.
  if (step >= distance || step <= -distance) return {begin, 1, 1};
  return {begin, (distance - 1) / std::abs(step) + 1, step};
}

bool is_whole(const CutAttrs& a, int axis) {
  const auto i = static_cast<std::size_t>(axis);
  return a.start[i] == kOpen && a.stop[i] == kOpen && a.step[i] == 1;
}

bool has_steps(const CutAttrs& a) {
  return std::any_of(a.step.begin(), a.step.end(), [](std::int64_t step) { return step != 1; });
}

// Axes that are not cut keep a split.
Placed place_cut(const CutAttrs& a, const PlaceArgs& args) {
  std::vector<int> axis_out;
  for (int axis = 0; axis < args.in[0].shape.ndim(); ++axis) axis_out.push_back(is_whole(a, axis) ? axis : -1);
  return place_by_axis(args, axis_out, /*linear=*/true);
}

// The strides of the elements that are cut out, and the offset of the first one.
Strides strides_of(const CutAttrs& a, const Shape& shape, std::int64_t& first_element) {
  Strides strides = strides_of(shape);
  first_element = 0;
  for (int axis = 0; axis < shape.ndim(); ++axis) {
    const Cut cut = cut_of(a, axis, shape[axis]);
    first_element += strides[static_cast<std::size_t>(axis)] * cut.begin;
    strides[static_cast<std::size_t>(axis)] *= cut.step;
  }
  return strides;
}

struct StridedSlice {
  static constexpr std::string_view kName = "strided_slice";
  static constexpr bool kMovesData = true;
  static constexpr bool kTakesFloat16 = true;
  using Attrs = CutAttrs;
  static constexpr auto fields = std::tuple{field("start", &Attrs::start), field("stop", &Attrs::stop),
                                            field("step", &Attrs::step), field("picked", &Attrs::picked)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    Meta out = in[0];
    for (int axis = 0; axis < out.shape.ndim(); ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      std::int64_t& size = out.shape[axis];
      if (a.step[i] == 0) fail<ValueError>("index: the step of axis ", axis, " is 0; give another number");
      const bool outside = a.picked[i] != 0 && size >= 0 && (a.start[i] >= size || a.start[i] < -size);
      if (outside) fail<ValueError>("index: the index ", a.start[i], " is outside axis ", axis, " of x ", in[0].shape);
      if (a.picked[i] != 0) size = 1;
      else if (size >= 0) size = cut_of(a, axis, size).count;
    }
    return out;
  }
  static KnownElements known_elements(const Attrs& a, std::span<const Expr> in, std::span<const KnownElements> known) {
    KnownElements elements;
    if (in[0].ndim() != 1 || known[0].empty()) return elements;
    const Cut cut = cut_of(a, 0, in[0].shape()[0]);
    for (std::int64_t i = 0; i < cut.count; ++i)
      elements.push_back(known[0][static_cast<std::size_t>(cut.begin + i * cut.step)]);
    return elements;
  }
  static Placed place(const Attrs& a, const PlaceArgs& args) { return place_cut(a, args); }
  static void run(const Attrs& a, const KernelArgs& k) {
    if (k.out_shape().size() == 0) return;
    std::int64_t begin = 0;
    const Strides from = strides_of(a, k.in_shape(0), begin);
    const std::size_t size = size_of(k.out_dtype());
    kernels::strided_copy(k.out_shape().dims(), first(from, k.out_shape().ndim()), size,
                          k.input<std::byte>(0) + static_cast<std::size_t>(begin) * size, k.out[0]);
  }
  static Expr simplify(const Attrs& a, std::span<const Expr> in, const Meta& out) {
    const Shape& x = in[0].shape();
    if (!x.is_known() || has_steps(a)) return {};
    Numbers begin;
    for (int axis = 0; axis < x.ndim(); ++axis) begin.push_back(cut_of(a, axis, x[axis]).begin);
    return slice(in[0], begin, out.shape);
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy);
};

// Zeros of `shape`, with x at the positions that the strided slice reads.
struct StridedPad {
  static constexpr std::string_view kName = "strided_pad";
  static constexpr bool kMovesData = true;
  static constexpr bool kTakesFloat16 = true;
  struct Attrs : CutAttrs {
    Shape shape;
  };
  static constexpr auto fields =
      std::tuple{field<Attrs, Numbers>("start", &Attrs::start), field<Attrs, Numbers>("stop", &Attrs::stop),
                 field<Attrs, Numbers>("step", &Attrs::step), field<Attrs, Shape>("shape", &Attrs::shape)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) { return {in[0].dtype, a.shape}; }
  static Placed place(const Attrs& a, const PlaceArgs& args) { return place_cut(a, args); }
  static void run(const Attrs& a, const KernelArgs& k) {
    const std::size_t size = size_of(k.out_dtype());
    kernels::clear_output(k);
    if (k.in_shape(0).size() == 0) return;
    std::int64_t begin = 0;
    const int ndim = k.out_shape().ndim();
    const Strides to = strides_of(a, k.out_shape(), begin), from = syncline::strides_of(k.in_shape(0));
    kernels::strided_copy(k.in_shape(0).dims(), first(from, ndim), first(to, ndim), size, k.in[0],
                          k.output<std::byte>() + static_cast<std::size_t>(begin) * size);
  }
  static Expr simplify(const Attrs& a, std::span<const Expr> in, const Meta& out) {
    const Shape& x = in[0].shape();
    if (!x.is_known() || has_steps(a)) return {};
    Numbers before, after;
    for (int axis = 0; axis < x.ndim(); ++axis) {
      before.push_back(cut_of(a, axis, out.shape[axis]).begin);
      after.push_back(out.shape[axis] - before.back() - x[axis]);
    }
    return pad(in[0], before, after);
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr&, const Expr& dy) { return {apply<StridedSlice>({dy}, a)}; }
};

std::vector<Expr> StridedSlice::grad(const Attrs& a, const Expr& y, const Expr& dy) {
  const Expr& x = y.input(0);
  return {with_numbers("index", {dy}, dims_of(x), x.meta(), [a](std::span<const Expr> operands, const Shape& shape) {
    return apply<StridedPad>({operands[0]}, {a, shape});
  })};
}

SYNCLINE_REGISTER_OP(StridedSlice)
SYNCLINE_REGISTER_OP(StridedPad)

// `bounds`: three numbers per axis (start, stop, step); some may be tensors.
Expr cut(const Expr& x, const Dims& bounds, const std::vector<int>& picked) {
  const auto attrs_of = [picked](const Shape& numbers) {
    CutAttrs a{{}, {}, {}, picked};
    for (int i = 0; i < numbers.ndim(); i += 3) {
      a.start.push_back(numbers[i]);
      a.stop.push_back(numbers[i + 1]);
      a.step.push_back(numbers[i + 2]);
    }
    return a;
  };
  Meta unknown = x.meta();
  if (bounds.has_tensors()) {
    for (int axis = 0; axis < x.ndim(); ++axis)
      if (bounds.is_tensor(3 * axis) || bounds.is_tensor(3 * axis + 1)) unknown.shape[axis] = kUnknown;
    unknown = StridedSlice::infer(attrs_of(bounds.numbers()), {&unknown, 1});
  }
  return with_numbers("index", {x}, bounds, unknown, [attrs_of](std::span<const Expr> operands, const Shape& numbers) {
    const CutAttrs a = attrs_of(numbers);
    bool whole = true;
    for (int axis = 0; axis < operands[0].ndim(); ++axis) whole = whole && is_whole(a, axis);
    return whole ? operands[0] : apply<StridedSlice>({operands[0]}, a);
  });
}

// `dtype`: of a known size.
Expr tensor_of(const Dim& size, DType dtype) {
  return size.is_number() ? scalar(static_cast<double>(size.number()), dtype) : size.tensor();
}

// A negative index counts from the end, as a number does.
Expr from_front(const Expr& index, const Dim& size) {
  const Expr wide = cast(index, DType::kInt64), end = cast(tensor_of(size, DType::kInt64), DType::kInt64);
  return wide + cast(less(wide, scalar(0, DType::kInt64)), DType::kInt64) * end;
}

// Gathers elements along `axis`; the axes of `indices` replace it.
Expr gather_along(const Expr& x, int axis, const Expr& indices) {
  if (!is_integer(indices.dtype()))
    fail<DTypeError>("index: a tensor of ", indices.dtype(), " is not an index; give integers, or bool for a mask");
  std::vector<int> front{axis}, back;
  for (int i = 0; i < x.ndim(); ++i)
    if (i != axis) front.push_back(i);
  for (int i = 0; i < axis; ++i) back.push_back(indices.ndim() + i);
  for (int i = 0; i < indices.ndim(); ++i) back.push_back(i);
  for (int i = axis + 1; i < x.ndim(); ++i) back.push_back(indices.ndim() + i - 1);
  const Expr places = indices.ndim() == 0 ? from_front(indices, dim(x, axis)) : indices;
  if (axis == 0) return gather(x, places);
  return permute_dimensions(gather(permute_dimensions(x, front), places), back);
}

// The positions of the `count` true elements of a bool vector.
struct TrueAt {
  static constexpr std::string_view kName = "true_at";
  struct Attrs {
    std::int64_t count = 0;
  };
  static constexpr auto fields = std::tuple{field("count", &Attrs::count)};
  static Meta infer(const Attrs& a, std::span<const Meta>) { return {DType::kInt64, Shape{a.count}}; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static void run(const Attrs& a, const KernelArgs& k) {
    const bool* mask = k.input<bool>(0);
    auto* found = k.output<std::int64_t>();
    for (std::int64_t i = 0, n = 0; n < a.count; ++i)
      if (mask[i]) found[n++] = i;
  }
  static constexpr NoGradient grad{"positions are integers"};
};

SYNCLINE_REGISTER_OP(TrueAt)

void check_mask(const Shape& x, int axis, const Shape& mask) {
  for (int i = 0; i < mask.ndim(); ++i)
    if (const std::int64_t size = x[axis + i]; size >= 0 && mask[i] >= 0 && size != mask[i])
      fail<ShapeError>("index: a mask of shape ", mask, " does not fit x ", x, " from axis ", axis);
}

// Merges the mask's axes, which begin with `axis`, into one axis with the elements where the mask is true.
Expr masked(const Expr& x, int axis, const Expr& mask) {
  check_mask(x.shape(), axis, mask.shape());
  Meta unknown{x.dtype(), x.shape()};
  for (int i = 1; i < mask.ndim(); ++i) unknown.shape.erase(axis);
  unknown.shape[axis] = kUnknown;
  return once_known("index", {x, mask}, unknown, [axis](std::span<const Expr> in) {
    check_mask(in[0].shape(), axis, in[1].shape());
    Shape merged = in[0].shape();
    for (int i = 1; i < in[1].ndim(); ++i) {
      merged[axis] *= merged[axis + 1];
      merged.erase(axis + 1);
    }
    const Expr flat = flatten(in[1]);
    const auto positions = [](std::span<const Expr> mask_of, const Shape& count) {
      return apply<TrueAt>({mask_of[0]}, {count[0]});
    };
    const Expr indices =
        with_numbers("index", {flat}, Dims{sum(cast(flat, DType::kInt64))}, {DType::kInt64, {kUnknown}}, positions);
    return gather_along(reshape(in[0], merged), axis, indices);
  });
}

bool is_mask(const Subscript& s) {
  const auto* tensor = std::get_if<Expr>(&s);
  return tensor != nullptr && tensor->dtype() == DType::kBool;
}

// Number of axes of x that a subscript covers.
int axes_of(const Subscript& s) {
  if (std::holds_alternative<NewAxis>(s) || std::holds_alternative<Ellipsis>(s)) return 0;
  if (!is_mask(s)) return 1;
  const int axes = std::get<Expr>(s).ndim();
  if (axes == 0) fail<ShapeError>("index: a mask is a scalar; give one with axes, or use switch");
  return axes;
}

// Replaces the ellipsis by ranges, so that the subscripts cover all axes of x.
std::vector<Subscript> spelled_out(const Expr& x, const std::vector<Subscript>& subscripts) {
  int axes = 0, ellipses = 0;
  for (const Subscript& s : subscripts) {
    if (std::holds_alternative<Ellipsis>(s)) ++ellipses;
    axes += axes_of(s);
  }
  if (axes > x.ndim() || ellipses > 1)
    fail<ValueError>("index: there are subscripts for ", axes, " axes and ", ellipses, " ellipses for x ", x.shape(),
                     "; give at most one subscript per axis and one ellipsis");
  std::vector<Subscript> result;
  const auto fill_up = [&] {
    for (int axis = axes; axis < x.ndim(); ++axis) result.emplace_back(Range{});
  };
  for (const Subscript& s : subscripts) {
    if (std::holds_alternative<Ellipsis>(s)) fill_up();
    else result.push_back(s);
  }
  if (ellipses == 0) fill_up();
  return result;
}

// A bound as a number or tensor. A given number is clamped so that it never equals kOpen.
Dim bound_of(const std::optional<Dim>& given) {
  if (!given) return kOpen;
  return given->is_number() ? Dim(std::max(given->number(), kOpen + 1)) : *given;
}

}  // namespace

Expr index(const Expr& x, const std::vector<Subscript>& subscripts) {
  if (x.op().name == "shape" && subscripts.size() == 1 && std::holds_alternative<std::int64_t>(subscripts[0])) {
    return tensor_of(dim(x.input(0), Axes::narrow(std::get<std::int64_t>(subscripts[0]))), x.dtype());
  }
  const std::vector<Subscript> all = spelled_out(x, subscripts);
  Dims bounds;
  std::vector<int> picked;
  for (const Subscript& s : all) {
    if (is_mask(s)) {
      for (int i = 0; i < axes_of(s); ++i) bounds.append(Dims{kOpen, kOpen, 1});
      picked.resize(picked.size() + static_cast<std::size_t>(axes_of(s)), 0);
      continue;
    }
    if (std::holds_alternative<NewAxis>(s)) continue;
    picked.push_back(std::holds_alternative<std::int64_t>(s) ? 1 : 0);
    if (const auto* at = std::get_if<std::int64_t>(&s)) {
      const std::int64_t behind = std::min(*at, std::numeric_limits<std::int64_t>::max() - 1) + 1;
      bounds.append(Dims{*at, *at == -1 ? kOpen : behind, 1});
    } else {
      const auto* given = std::get_if<Range>(&s);
      const Range range = given != nullptr ? *given : Range{};
      bounds.append(Dims::of_numbers("index", {bound_of(range.start), bound_of(range.stop), range.step}));
    }
  }
  Expr result = cut(x, bounds, picked);
  int axis = 0;
  for (const Subscript& s : all) {
    if (std::holds_alternative<std::int64_t>(s)) {
      result = squeeze(result, axis);
    } else if (is_mask(s)) {
      result = masked(result, axis++, std::get<Expr>(s));
    } else if (const auto* indices = std::get_if<Expr>(&s)) {
      result = gather_along(result, axis, *indices);
      axis += indices->ndim();
    } else {
      if (std::holds_alternative<NewAxis>(s)) result = expand_dims(result, axis);
      ++axis;
    }
  }
  return result;
}

}  // namespace syncline
