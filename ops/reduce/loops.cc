#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce/loops.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "base/convert.h"
#include "ops/reduce/loops.h"

HWY_BEFORE_NAMESPACE();
namespace syncline {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Plain loops that the compiler vectorizes for each instruction set; the source fixes the order of additions.
template <class T>
constexpr T least() {
  if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
  else return std::numeric_limits<T>::lowest();
}
template <class T>
constexpr T greatest() {
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::infinity();
  else return std::numeric_limits<T>::max();
}

struct SumF {
  template <class T>
  static constexpr T kStart = T(0);
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(wrapping(a) + wrapping(b));
  }
};
struct ProdF {
  template <class T>
  static constexpr T kStart = T(1);
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(wrapping(a) * wrapping(b));
  }
};
struct AnyF {
  template <class T>
  static constexpr T kStart = T(0);
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct AllF {
  template <class T>
  static constexpr T kStart = T(1);
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
// A NaN wins, as in NumPy and TensorFlow.
struct MaxF {
  template <class T>
  static constexpr T kStart = least<T>();
  template <class T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct MinF {
  template <class T>
  static constexpr T kStart = greatest<T>();
  template <class T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

constexpr std::int64_t kTreeRows = 8, kDepth = 256, kColumnLanes = 64;
static_assert(kColumnLanes * kDepth <= kMostInUnit && kTreeRows * kWideRow <= kMostInUnit);

template <class F, class T>
void start(void* acc, std::int64_t w) {
  std::fill_n(static_cast<T*>(acc), w, F::template kStart<T>);
}

// Eight rows per pass: accumulators are read and written once for eight elements, which are combined as a tree.
template <class F, class T>
void wide_columns(const T* x, std::int64_t m, std::int64_t w, std::int64_t stride, T* __restrict acc) {
  const F f;
  std::int64_t i = 0;
  for (; i + kTreeRows <= m; i += kTreeRows) {
    const T *a = x + i * stride, *b = a + 4 * stride;
#pragma GCC ivdep
    for (std::int64_t j = 0; j < w; ++j) {
      const T low = f(f(a[j], a[j + stride]), f(a[j + 2 * stride], a[j + 3 * stride]));
      const T high = f(f(b[j], b[j + stride]), f(b[j + 2 * stride], b[j + 3 * stride]));
      acc[j] = f(acc[j], f(low, high));
    }
  }
  for (; i < m; ++i) {
    const T* a = x + i * stride;
#pragma GCC ivdep
    for (std::int64_t j = 0; j < w; ++j) acc[j] = f(acc[j], a[j]);
  }
}

// Few columns: several rows form one row of lanes. Lanes are folded every kDepth rows, which also keeps rounding errors
// of long sums small.
template <class F, class T, std::int64_t kLanes>
void narrow_columns(const T* x, std::int64_t m, std::int64_t w, T* acc) {
  const F f;
  const std::int64_t rows = kLanes / w, lanes = rows * w;
  T lane[kLanes];
  while (m >= rows) {
    const std::int64_t depth = std::min(kDepth, m / rows);
    start<F, T>(lane, lanes);
    wide_columns<F, T>(x, depth, lanes, lanes, lane);
    for (std::int64_t half = rows; half > 1; half = (half + 1) / 2) {
      const std::int64_t from = (half + 1) / 2 * w, end = half * w;
      for (std::int64_t j = from; j < end; ++j) lane[j - from] = f(lane[j - from], lane[j]);
    }
    for (std::int64_t j = 0; j < w; ++j) acc[j] = f(acc[j], lane[j]);
    x += depth * lanes;
    m -= depth * rows;
  }
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < w; ++j) acc[j] = f(acc[j], x[i * w + j]);
}

// The same functions for vectors.
template <class D, class V>
HWY_INLINE V apply(SumF, D, V a, V b) {
  return hn::Add(a, b);
}
template <class D, class V>
HWY_INLINE V apply(ProdF, D, V a, V b) {
  return hn::Mul(a, b);
}
// These do not propagate NaN: fold_groups checks for it.
template <class D, class V>
HWY_INLINE V apply(MaxF, D, V a, V b) {
  return hn::Max(a, b);
}
template <class D, class V>
HWY_INLINE V apply(MinF, D, V a, V b) {
  return hn::Min(a, b);
}

// Folds the lanes of a vector to one element, half to half. Highway's SumOfLanes, MaxOfLanes and MinOfLanes take lanes
// in an order of each instruction set. That order decides the bits of a sum, and between 0 and -0. No lane of a maximum
// or minimum is NaN: fold_groups has checked it.
template <class F, class D, class V>
HWY_INLINE HWY_ATTR hn::TFromD<D> fold(F f, D, V v) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(v);
  } else {
    const hn::Half<D> half;
    // UpperHalf is found by its arguments: the scalar instruction set has none.
    return fold(f, half, apply(f, half, hn::LowerHalf(half, v), UpperHalf(half, v)));
  }
}

// Reduces groups of kLanes elements of one contiguous column, lane by lane, in as many vectors as needed; folds the
// lanes every kDepth steps. Leaves fewer than kLanes elements; for a maximum or minimum, returns false before a group
// that may hold a NaN, which wins.
template <class F, class T, std::int64_t kLanes>
HWY_INLINE HWY_ATTR bool fold_groups(const T*& x, std::int64_t& m, T* acc) {
  const hn::CappedTag<T, static_cast<std::size_t>(kLanes)> d;
  constexpr auto kWidth = static_cast<std::int64_t>(hn::MaxLanes(decltype(d)()));
  constexpr std::int64_t kVectors = kLanes / kWidth;
  // `watch` is a sum: NaN if an element is NaN (or infinities cancel). Then the caller takes elements one by one.
  constexpr bool kWatch = std::is_same_v<F, MaxF> || std::is_same_v<F, MinF>;
  const F f;
  while (m >= kLanes) {
    const std::int64_t depth = std::min(kDepth, m / kLanes);
    hn::Vec<decltype(d)> v[kVectors], watch[kVectors];
    for (std::int64_t k = 0; k < kVectors; ++k) v[k] = watch[k] = hn::LoadU(d, x + k * kWidth);
    for (std::int64_t i = 1; i < depth; ++i)
      for (std::int64_t k = 0; k < kVectors; ++k) {
        const auto next = hn::LoadU(d, x + i * kLanes + k * kWidth);
        v[k] = apply(f, d, v[k], next);
        if (kWatch) watch[k] = hn::Add(watch[k], next);
      }
    for (std::int64_t k = 1; k < kVectors; ++k) watch[0] = hn::Add(watch[0], watch[k]);
    if (kWatch && !hn::AllFalse(d, hn::IsNaN(watch[0]))) return false;
    for (std::int64_t half = kVectors / 2; half > 0; half /= 2)
      for (std::int64_t k = 0; k < half; ++k) v[k] = apply(f, d, v[k], v[k + half]);
    *acc = f(*acc, fold(f, d, v[0]));
    x += depth * kLanes;
    m -= depth * kLanes;
  }
  return true;
}

template <class F, class T>
HWY_ATTR void one_column(const T* x, std::int64_t m, T* acc) {
  const F f;
  static_cast<void>(fold_groups<F, T, kColumnLanes>(x, m, acc) && fold_groups<F, T, 16>(x, m, acc) &&
                    fold_groups<F, T, 4>(x, m, acc));
  for (std::int64_t i = 0; i < m; ++i) *acc = f(*acc, x[i]);
}

enum class Way { kOneColumn, kNarrow64, kNarrow16, kWide };

// How m rows of w elements, one behind the other, are reduced.
template <class T>
Way way_of(std::int64_t m, std::int64_t w) {
  if (std::is_floating_point_v<T> && w == 1 && m >= 16) return Way::kOneColumn;
  if (w < 32 && m * w >= 512) return Way::kNarrow64;
  // Integers give the same result in any order, and small sums of them are rare: one loop less to compile.
  if (std::is_floating_point_v<T> && w <= 8 && m * w >= 32) return Way::kNarrow16;
  return Way::kWide;
}

template <class T>
std::int64_t unit(std::int64_t m, std::int64_t w) {
  switch (way_of<T>(m, w)) {
    case Way::kOneColumn: return kColumnLanes * kDepth;
    case Way::kNarrow64: return 64 / w * kDepth;
    case Way::kNarrow16: return 16 / w * kDepth;
    default: return kTreeRows;
  }
}

template <class F, class T>
void columns(const void* raw, std::int64_t m, std::int64_t w, std::int64_t stride, void* raw_acc, std::int64_t whole) {
  const T* x = static_cast<const T*>(raw);
  T* acc = static_cast<T*>(raw_acc);
  const Way way = stride == w ? way_of<T>(whole, w) : Way::kWide;
  if (way == Way::kNarrow64) return narrow_columns<F, T, 64>(x, m, w, acc);
  if constexpr (std::is_floating_point_v<T>) {
    if (way == Way::kOneColumn) return one_column<F, T>(x, m, acc);
    if (way == Way::kNarrow16) return narrow_columns<F, T, 16>(x, m, w, acc);
  }
  wide_columns<F, T>(x, m, w, stride, acc);
}

template <class F, class T>
void combine(const void* parts, std::int64_t m, std::int64_t w, void* acc) {
  columns<F, T>(parts, m, w, w, acc, m);
}

template <class F, class T>
constexpr ReduceLoops loops_of{&start<F, T>, &columns<F, T>, &unit<T>, &combine<F, T>, sizeof(T)};

template <class F>
ReduceLoops arithmetic_loops(DType dtype) {
  return with_dtype(dtype, []<class T>(T) { return loops_of<F, T>; });
}
template <class F>
ReduceLoops logical_loops(DType) {
  return loops_of<F, bool>;
}

struct NamedLoops {
  std::string_view name;
  ReduceLoops (*of)(DType);
};
constexpr NamedLoops kLoops[] = {
    {"sum", &arithmetic_loops<SumF>}, {"prod", &arithmetic_loops<ProdF>}, {"max", &arithmetic_loops<MaxF>},
    {"min", &arithmetic_loops<MinF>}, {"any", &logical_loops<AnyF>},      {"all", &logical_loops<AllF>},
};

ReduceLoops find_loops(std::string_view name, DType dtype) {
  for (const NamedLoops& row : kLoops)
    if (row.name == name) return row.of(dtype);
  fail<InternalError>("no loops for the reduction ", name);
}

}  // namespace HWY_NAMESPACE
}  // namespace syncline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncline {
namespace {
HWY_EXPORT(find_loops);
}

ReduceLoops reduce_loops(std::string_view op, DType dtype) { return HWY_DYNAMIC_DISPATCH(find_loops)(op, dtype); }

}  // namespace syncline
#endif  // HWY_ONCE
