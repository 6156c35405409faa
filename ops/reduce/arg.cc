// argmax and argmin: the index of the first extreme element along an axis. NaN counts as extreme, as in NumPy.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce/arg.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "ops/reduce/slices_along.h"
#include "syncline/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace syncline {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kBlock = 4096;  // elements of a row that are searched while they are in the cache

// True if `value` takes the place of `best`, which stands before it.
template <bool kLargest, class T>
HWY_INLINE HWY_ATTR bool beats(T value, T best) {
  return (kLargest ? value > best : value < best) || (value != value && best == best);
}
template <bool kLargest, class D, class V>
HWY_INLINE HWY_ATTR auto beats(D, V value, V best) {
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>)
    return hn::AndNot(kLargest ? hn::Le(value, best) : hn::Ge(value, best), hn::Eq(best, best));
  else return kLargest ? hn::Gt(value, best) : hn::Lt(value, best);
}

// The best element so far and its index.
template <class T>
struct Best {
  T value;
  std::int64_t index;
};

// Goes on with elements [begin, length) of a slice whose elements are `inner` apart. A larger element costs no branch,
// which random elements would mispredict.
template <bool kLargest, class T>
HWY_INLINE HWY_ATTR Best<T> best_of(Best<T> best, const T* x, std::int64_t begin, std::int64_t length,
                                    std::int64_t inner) {
  for (std::int64_t i = begin; i < length; ++i) {
    const T value = x[i * inner];
    if (value != value && best.value == best.value) return {value, i};
    const bool ahead = kLargest ? value > best.value : value < best.value;
    best.value = ahead ? value : best.value;
    best.index = ahead ? i : best.index;
  }
  return best;
}

// The best element so far in each lane of a vector. The indices have the width of the elements.
template <bool kLargest, class T>
struct BestLanes {
  using Index = hwy::MakeSigned<T>;
  static constexpr hn::ScalableTag<T> d{};
  static constexpr hn::ScalableTag<Index> di{};
  static constexpr std::size_t kMost = HWY_MAX_BYTES / sizeof(T);
  hn::Vec<hn::ScalableTag<T>> value;
  hn::Vec<hn::ScalableTag<Index>> index;
  HWY_INLINE HWY_ATTR void meet(const T* other, hn::Vec<hn::ScalableTag<Index>> at) {
    const auto x = hn::LoadU(d, other);
    const auto wins = beats<kLargest>(d, x, value);
    value = hn::IfThenElse(wins, x, value);
    index = hn::IfThenElse(hn::RebindMask(di, wins), at, index);
  }
};

// True if the lanes of a vector hold the indices of so many elements.
template <class T>
constexpr bool lanes_hold(std::int64_t length) {
  if constexpr (sizeof(T) < 4) return false;
  else return length <= std::numeric_limits<hwy::MakeSigned<T>>::max();
}

// The best of `length` elements, which fill at least one vector; NaN if there is a NaN.
template <bool kLargest, class T>
HWY_INLINE HWY_ATTR T best_value(const T* x, std::int64_t length) {
  constexpr int kVectors = 4;
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto better = [](V a, V b) HWY_ATTR { return kLargest ? hn::Max(a, b) : hn::Min(a, b); };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V best[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) best[v] = hn::LoadU(d, x);
  auto ordered = hn::Eq(hn::Zero(d), hn::Zero(d));  // the lanes without a NaN
  const auto meet = [&](V& to, std::int64_t i) HWY_ATTR {
    const V value = hn::LoadU(d, x + i);
    to = better(to, value);
    if constexpr (std::is_floating_point_v<T>) ordered = hn::And(ordered, hn::Eq(value, value));
  };
  std::int64_t i = 0;
  for (; i + kVectors * lanes <= length; i += kVectors * lanes) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) meet(best[v], i + v * lanes);
  }
  for (; i + lanes <= length; i += lanes) meet(best[0], i);
  if (i < length) meet(best[1], length - lanes);
  if constexpr (std::is_floating_point_v<T>)
    if (!hn::AllTrue(d, ordered)) return std::numeric_limits<T>::quiet_NaN();
  const V all = better(better(best[0], best[1]), better(best[2], best[3]));
  return hn::GetLane(kLargest ? hn::MaxOfLanes(d, all) : hn::MinOfLanes(d, all));
}

// The index of the first element that equals best_value's result, or that is a NaN.
template <class T>
HWY_INLINE HWY_ATTR std::int64_t first_of(const T* x, std::int64_t length, T value) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto wanted = hn::Set(d, value);
  for (std::int64_t i = 0;; i = std::min(i + lanes, length - lanes)) {
    const auto element = hn::LoadU(d, x + i);
    auto here = hn::Eq(element, wanted);
    if constexpr (std::is_floating_point_v<T>) here = hn::Or(here, hn::IsNaN(element));
    if (const auto lane = hn::FindFirstTrue(d, here); lane >= 0) return i + lane;
  }
}

// A pass over a block of the row finds its best value, a second one, only if that is better, its place.
template <bool kLargest, class T>
HWY_INLINE HWY_ATTR std::int64_t arg_of_row(const T* x, std::int64_t length) {
  Best<T> best{x[0], 0};
  std::int64_t begin = 0;
  if constexpr (sizeof(T) >= 4) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
    while (length - begin >= lanes) {
      const std::int64_t count = std::min(length - begin, kBlock);
      const T value = best_value<kLargest>(x + begin, count);
      if (begin == 0 || beats<kLargest>(value, best.value)) best = {value, begin + first_of(x + begin, count, value)};
      begin += count;
    }
  }
  return best_of<kLargest>(best, x, begin, length, 1).index;
}

// `count` neighbouring columns.
template <bool kLargest, class T>
HWY_ATTR void arg_of_columns(const T* x, std::int64_t length, std::int64_t inner, std::int64_t count, std::int64_t* y) {
  std::int64_t j = 0;
  if constexpr (sizeof(T) >= 4) {
    using Lanes = BestLanes<kLargest, T>;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(Lanes::d));
    for (; j + lanes <= count && lanes_hold<T>(length); j += lanes) {
      Lanes best{hn::LoadU(Lanes::d, x + j), hn::Zero(Lanes::di)};
      for (std::int64_t i = 1; i < length; ++i)
        best.meet(x + i * inner + j, hn::Set(Lanes::di, static_cast<typename Lanes::Index>(i)));
      alignas(64) typename Lanes::Index indices[Lanes::kMost];
      hn::Store(best.index, Lanes::di, indices);
      std::copy_n(indices, lanes, y + j);
    }
  }
  for (; j < count; ++j) y[j] = best_of<kLargest>(Best<T>{x[j], 0}, x + j, 1, length, inner).index;
}

// Slices [begin, end) of x, in the order of the output.
template <bool kLargest, class T>
HWY_ATTR void arg_of_slices(const void* in, std::int64_t* y, const SlicesAlong& s, std::int64_t begin,
                            std::int64_t end) {
  const T* x = static_cast<const T*>(in);
  if (s.inner == 1) {
    for (std::int64_t row = begin; row < end; ++row) y[row] = arg_of_row<kLargest>(x + row * s.length, s.length);
    return;
  }
  while (begin < end) {
    const std::int64_t row = begin / s.inner, column = begin % s.inner, count = std::min(end - begin, s.inner - column);
    arg_of_columns<kLargest>(x + row * s.length * s.inner + column, s.length, s.inner, count, y + begin);
    begin += count;
  }
}

using ArgFunction = void (*)(const void* x, std::int64_t* y, const SlicesAlong& s, std::int64_t begin,
                             std::int64_t end);

ArgFunction arg_function(bool largest, DType dtype) {
  return with_dtype(
      dtype, [&]<class T>(T) -> ArgFunction { return largest ? &arg_of_slices<true, T> : &arg_of_slices<false, T>; });
}

}  // namespace HWY_NAMESPACE
}  // namespace syncline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/kernels/parallel.h"
#include "ops/reduce/axes.h"
#include "syncline/backend/reduce.h"

namespace syncline {
namespace {
HWY_EXPORT(arg_function);

struct ArgAttrs {
  int axis = -1;
};

template <class Self>
struct Arg {
  using Attrs = ArgAttrs;
  static constexpr auto fields = std::tuple{field("axis", &ArgAttrs::axis)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    Shape out = in[0].shape;
    const int axis = wrap_axis(Self::kName, a.axis, out.ndim());
    if (out[axis] == 0) fail<ShapeError>(Self::kName, ": axis ", a.axis, " of x ", out, " is empty");
    out.erase(axis);
    return {DType::kInt64, out};
  }
  static Placed place(const Attrs& a, const PlaceArgs& args) {
    return place_reduction(Self::kName, {{a.axis}, false}, args, Placement::replicated());
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const Shape& shape = k.in_shape(0);
    const SlicesAlong slices = slices_along(shape, wrap_axis(Self::kName, a.axis, shape.ndim()));
    const auto arg_of = HWY_DYNAMIC_DISPATCH(arg_function)(Self::kLargest, k.in_dtype(0));
    kernels::parallel_for(
        slices.outer * slices.inner, 0.3 * static_cast<double>(slices.length),
        [&](std::int64_t begin, std::int64_t end) { arg_of(k.in[0], k.output<std::int64_t>(), slices, begin, end); });
  }
  static constexpr NoGradient grad{"an index is piecewise constant"};
};

struct ArgMax : Arg<ArgMax> {
  static constexpr std::string_view kName = "argmax";
  static constexpr bool kLargest = true;
};
struct ArgMin : Arg<ArgMin> {
  static constexpr std::string_view kName = "argmin";
  static constexpr bool kLargest = false;
};

SYNCLINE_REGISTER_OP(ArgMax)
SYNCLINE_REGISTER_OP(ArgMin)

}  // namespace

Expr argmax(const Expr& x, int axis) { return apply<ArgMax>({x}, {axis}); }
Expr argmin(const Expr& x, int axis) { return apply<ArgMin>({x}, {axis}); }

}  // namespace syncline
#endif  // HWY_ONCE
