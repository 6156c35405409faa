// softmax: y = exp(x - max(x)) / sum(exp(x - max(x))), max and sum along one axis.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/softmax.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include <hwy/highway.h>

#include "ops/kernels/fused/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syncline {
namespace HWY_NAMESPACE {

// Loads n < Lanes(d) elements from p into the first lanes; the other lanes are `rest`. Never reads beyond p + n.
template <class D, class T, class V>
HWY_INLINE HWY_ATTR V load_first(D d, const T* p, std::int64_t n, V rest) {
  alignas(64) T copy[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(rest, d, copy);
  std::memcpy(copy, p, static_cast<std::size_t>(n) * sizeof(T));
  return hn::Load(d, copy);
}

template <class D, class T, class V>
HWY_INLINE HWY_ATTR void store_first(D d, V v, T* p, std::int64_t n) {
  alignas(64) T copy[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, copy);
  std::memcpy(p, copy, static_cast<std::size_t>(n) * sizeof(T));
}

// e^x for x <= 0, minus infinity or NaN.
template <class D, class V>
HWY_INLINE HWY_ATTR V exp_of_negative(D d, V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
}

// Softmax of one contiguous slice. y may be x.
template <class T>
HWY_ATTR void softmax_row(const T* x, T* y, std::int64_t length) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t whole = length / lanes * lanes, left = length - whole;
  const auto lowest = hn::Neg(hn::Inf(d));
  const auto rest = left > 0 ? load_first(d, x + whole, left, lowest) : lowest;
  auto top = rest, top1 = lowest, top2 = lowest, top3 = lowest;  // four independent chains
  std::int64_t at = 0;
  for (; at + 4 * lanes <= whole; at += 4 * lanes) {
    top = hn::Max(top, hn::LoadU(d, x + at));
    top1 = hn::Max(top1, hn::LoadU(d, x + at + lanes));
    top2 = hn::Max(top2, hn::LoadU(d, x + at + 2 * lanes));
    top3 = hn::Max(top3, hn::LoadU(d, x + at + 3 * lanes));
  }
  for (; at < whole; at += lanes) top = hn::Max(top, hn::LoadU(d, x + at));
  top = hn::MaxOfLanes(d, hn::Max(hn::Max(top, top1), hn::Max(top2, top3)));

  // Unused lanes hold -infinity, whose exponential is 0, but NaN if `top` is -infinity too: set them to 0.
  const auto last =
      hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(left)), exp_of_negative(d, hn::Sub(rest, top)));
  auto total = last;
  for (std::int64_t i = 0; i < whole; i += lanes) {
    const auto e = exp_of_negative(d, hn::Sub(hn::LoadU(d, x + i), top));
    hn::StoreU(e, d, y + i);
    total = hn::Add(total, e);
  }
  const auto scale = hn::Div(hn::Set(d, T{1}), hn::SumOfLanes(d, total));
  for (std::int64_t i = 0; i < whole; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, y + i), scale), d, y + i);
  if (left > 0) store_first(d, hn::Mul(last, scale), y + whole, left);
}

// Softmax of n <= Lanes(d) neighbouring slices, one per lane: element i of slice j is x[i * stride + j]. y may be x.
template <class T>
HWY_ATTR void softmax_columns(const T* x, T* y, std::int64_t length, std::int64_t stride, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const bool full = n == static_cast<std::int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d);
  const auto load = [&](const T* p) HWY_ATTR { return full ? hn::LoadU(d, p) : load_first(d, p, n, zero); };
  const auto store = [&](auto v, T* p) HWY_ATTR {
    if (full) hn::StoreU(v, d, p);
    else store_first(d, v, p, n);
  };
  auto top = hn::Neg(hn::Inf(d));
  for (std::int64_t i = 0; i < length; ++i) top = hn::Max(top, load(x + i * stride));
  auto total = zero;
  for (std::int64_t i = 0; i < length; ++i) {
    const auto e = exp_of_negative(d, hn::Sub(load(x + i * stride), top));
    store(e, y + i * stride);
    total = hn::Add(total, e);
  }
  const auto scale = hn::Div(hn::Set(d, T{1}), total);
  for (std::int64_t i = 0; i < length; ++i) store(hn::Mul(load(y + i * stride), scale), y + i * stride);
}

// Softmax of slices [begin, end) of a value viewed as (outer, length, inner); slice s is (s / inner, :, s % inner).
template <class T>
HWY_ATTR void softmax_slices(const T* x, T* y, std::int64_t length, std::int64_t inner, std::int64_t begin,
                             std::int64_t end) {
  if (inner == 1) {
    for (std::int64_t row = begin; row < end; ++row) softmax_row(x + row * length, y + row * length, length);
    return;
  }
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  while (begin < end) {
    const std::int64_t outer = begin / inner, first = begin % inner;
    const std::int64_t n = std::min({lanes, inner - first, end - begin});
    const std::int64_t offset = outer * length * inner + first;
    softmax_columns(x + offset, y + offset, length, inner, n);
    begin += n;
  }
}

constexpr auto& softmax_slices_f32 = softmax_slices<float>;
constexpr auto& softmax_slices_f64 = softmax_slices<double>;

}  // namespace HWY_NAMESPACE
}  // namespace syncline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/kernels/parallel.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"

namespace syncline {
namespace {
HWY_EXPORT(softmax_slices_f32);
HWY_EXPORT(softmax_slices_f64);

struct Softmax {
  static constexpr std::string_view kName = "softmax";
  struct Attrs {
    int axis = -1;
  };
  static constexpr auto fields = std::tuple{field("axis", &Attrs::axis)};
  static constexpr bool kInPlace = true;

  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    if (!is_floating(in[0].dtype))
      fail<DTypeError>(kName, ": x is ", in[0].dtype, "; cast it to a floating dtype first");
    wrap_axis(kName, a.axis, in[0].shape.ndim());
    return in[0];
  }

  // Each slice needs all of its elements; slices are independent of each other.
  static Placed place(const Attrs& a, const PlaceArgs& args) {
    std::vector<int> axis_out(static_cast<std::size_t>(args.in[0].shape.ndim()));
    for (std::size_t axis = 0; axis < axis_out.size(); ++axis) axis_out[axis] = static_cast<int>(axis);
    const int along = wrap_axis(kName, a.axis, args.in[0].shape.ndim());
    axis_out[static_cast<std::size_t>(along)] = -1;
    // Along an axis before the rows, the order of operations depends on the number of rows.
    if (args.by_parts && args.at[0].is_split() && along < args.at[0].axis) return gathered(args);
    return place_by_axis(args, axis_out, /*linear=*/false);
  }

  static void run(const Attrs& a, const KernelArgs& k) {
    const Shape& shape = k.out_shape();
    const int axis = wrap_axis(kName, a.axis, shape.ndim());
    const std::int64_t outer = shape.product(0, axis), length = shape[axis];
    const std::int64_t inner = shape.product(axis + 1, shape.ndim());
    if (length == 0) return;
    const double cost = 10 + static_cast<double>(length);
    kernels::parallel_for(outer * inner, cost, [&](std::int64_t begin, std::int64_t end) {
      if (k.out_dtype() == DType::kFloat32)
        HWY_DYNAMIC_DISPATCH(softmax_slices_f32)(k.input<float>(0), k.output<float>(), length, inner, begin, end);
      else HWY_DYNAMIC_DISPATCH(softmax_slices_f64)(k.input<double>(0), k.output<double>(), length, inner, begin, end);
    });
  }

  // Uses only the output, so a plan can free x early.
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    return {mul(y, sub(dy, sum(mul(dy, y), {a.axis}, /*keepdims=*/true)))};
  }
};

SYNCLINE_REGISTER_OP(Softmax)

}  // namespace

Expr logits_of_softmax(const Expr& output, int axis) {
  const bool is_softmax =
      output.is<Softmax>() && wrap_axis(Softmax::kName, output.attrs<Softmax::Attrs>().axis, output.ndim()) == axis;
  return is_softmax ? output.input(0) : Expr{};
}

Expr softmax(const Expr& x, int axis) { return apply<Softmax>({x}, {axis}); }

}  // namespace syncline
#endif  // HWY_ONCE
