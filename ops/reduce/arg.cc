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

// True if `value` takes the place of `best`, which stands before it.
template <bool kLargest, class T>
bool beats(T value, T best) {
  return (kLargest ? value > best : value < best) || (value != value && best == best);
}
template <bool kLargest, class D, class V>
HWY_INLINE HWY_ATTR auto beats(D, V value, V best) {
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>)
    return hn::AndNot(kLargest ? hn::Le(value, best) : hn::Ge(value, best), hn::Eq(best, best));
  else return kLargest ? hn::Gt(value, best) : hn::Lt(value, best);
}

// The best element so far and its index.
template <bool kLargest, class T>
struct Best {
  T value;
  std::int64_t index;
  void meet(T other, std::int64_t at) {
    const bool tie = at < index && !beats<kLargest>(value, other);
    if (!tie && !beats<kLargest>(other, value)) return;
    value = other;
    index = at;
  }
};

// The same in each lane of a vector; the indices have the width of the elements.
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

template <bool kLargest, class T>
HWY_ATTR std::int64_t arg_of_row(const T* x, std::int64_t length) {
  using Lanes = BestLanes<kLargest, T>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Lanes::d));
  Best<kLargest, T> best{x[0], 0};
  std::int64_t i = 1;
  if (length >= 2 * lanes) {
    auto at = hn::Iota(Lanes::di, 0);
    Lanes all{hn::LoadU(Lanes::d, x), at};
    for (i = lanes; i + lanes <= length; i += lanes) {
      at = hn::Add(at, hn::Set(Lanes::di, static_cast<typename Lanes::Index>(lanes)));
      all.meet(x + i, at);
    }
    alignas(64) T values[Lanes::kMost];
    alignas(64) typename Lanes::Index indices[Lanes::kMost];
    hn::Store(all.value, Lanes::d, values);
    hn::Store(all.index, Lanes::di, indices);
    best = {values[0], indices[0]};
    for (std::int64_t lane = 1; lane < lanes; ++lane) best.meet(values[lane], indices[lane]);
  }
  for (; i < length; ++i) best.meet(x[i], i);
  return best.index;
}

template <bool kLargest, class T>
std::int64_t arg_of_column(const T* x, std::int64_t length, std::int64_t inner) {
  Best<kLargest, T> best{x[0], 0};
  for (std::int64_t i = 1; i < length; ++i) best.meet(x[i * inner], i);
  return best.index;
}

// `count` neighbouring columns.
template <bool kLargest, class T>
HWY_ATTR void arg_of_columns(const T* x, std::int64_t length, std::int64_t inner, std::int64_t count, std::int64_t* y) {
  using Lanes = BestLanes<kLargest, T>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Lanes::d));
  std::int64_t j = 0;
  for (; j + lanes <= count; j += lanes) {
    Lanes best{hn::LoadU(Lanes::d, x + j), hn::Zero(Lanes::di)};
    for (std::int64_t i = 1; i < length; ++i)
      best.meet(x + i * inner + j, hn::Set(Lanes::di, static_cast<typename Lanes::Index>(i)));
    alignas(64) typename Lanes::Index indices[Lanes::kMost];
    hn::Store(best.index, Lanes::di, indices);
    std::copy_n(indices, lanes, y + j);
  }
  for (; j < count; ++j) y[j] = arg_of_column<kLargest>(x + j, length, inner);
}

// Slices [begin, end) of x, in the order of the output.
template <bool kLargest, class T>
void arg_of_slices(const void* in, std::int64_t* y, const SlicesAlong& s, std::int64_t begin, std::int64_t end) {
  const T* x = static_cast<const T*>(in);
  constexpr bool kVectors = sizeof(T) >= 4;  // lanes hold the indices
  bool vectors = false;
  if constexpr (kVectors) vectors = s.length <= std::numeric_limits<hwy::MakeSigned<T>>::max();
  while (begin < end) {
    const std::int64_t row = begin / s.inner, column = begin % s.inner, count = std::min(end - begin, s.inner - column);
    const T* at = x + row * s.length * s.inner + column;
    if constexpr (kVectors) {
      if (vectors && s.inner == 1) y[begin] = arg_of_row<kLargest>(at, s.length);
      else if (vectors) arg_of_columns<kLargest>(at, s.length, s.inner, count, y + begin);
    }
    if (!vectors)
      for (std::int64_t j = 0; j < count; ++j) y[begin + j] = arg_of_column<kLargest>(at + j, s.length, s.inner);
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
    return place_reduction(Self::kName, {{a.axis}, false}, args);
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
