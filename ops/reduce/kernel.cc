#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce/kernel.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "base/convert.h"
#include "ops/reduce/kernel.h"

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

template <class F, class T>
void start(void* acc, std::int64_t w) {
  std::fill_n(static_cast<T*>(acc), w, F::template kStart<T>);
}

// Eight rows per pass: accumulators are read and written once for eight elements, which are combined as a tree.
template <class F, class T>
void wide_columns(const T* x, std::int64_t m, std::int64_t w, std::int64_t stride, T* __restrict acc) {
  const F f;
  std::int64_t i = 0;
  for (; i + 8 <= m; i += 8) {
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
  constexpr std::int64_t kDepth = 256;
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
// These do not propagate NaN: one_column checks for it.
template <class D, class V>
HWY_INLINE V apply(MaxF, D, V a, V b) {
  return hn::Max(a, b);
}
template <class D, class V>
HWY_INLINE V apply(MinF, D, V a, V b) {
  return hn::Min(a, b);
}

// Folds the lanes of a vector to one element.
template <class D, class V>
HWY_INLINE HWY_ATTR hn::TFromD<D> fold(SumF, D d, V v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}
template <class D, class V>
HWY_INLINE HWY_ATTR hn::TFromD<D> fold(MaxF, D d, V v) {
  return hn::GetLane(hn::MaxOfLanes(d, v));
}
template <class D, class V>
HWY_INLINE HWY_ATTR hn::TFromD<D> fold(MinF, D d, V v) {
  return hn::GetLane(hn::MinOfLanes(d, v));
}
template <class D, class V>
HWY_INLINE HWY_ATTR hn::TFromD<D> fold(ProdF f, D d, V v) {
  using T = hn::TFromD<D>;
  alignas(64) T lane[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, lane);
  for (std::size_t half = hn::Lanes(d) / 2; half > 0; half /= 2)
    for (std::size_t j = 0; j < half; ++j) lane[j] = f(lane[j], lane[j + half]);
  return lane[0];
}

// One contiguous column: 64 lanes, in as many vectors as needed, folded every kDepth steps.
template <class F, class T>
HWY_ATTR void one_column(const T* x, std::int64_t m, T* acc) {
  constexpr std::int64_t kLanes = 64, kDepth = 256;
  const hn::ScalableTag<T> d;
  constexpr auto kWidth = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  constexpr std::int64_t kVectors = kLanes / kWidth;
  // `watch` is a sum: NaN if an element is NaN (or infinities cancel). Then the last loop takes elements one by one.
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
    if (kWatch && !hn::AllFalse(d, hn::IsNaN(watch[0]))) break;
    for (std::int64_t half = kVectors / 2; half > 0; half /= 2)
      for (std::int64_t k = 0; k < half; ++k) v[k] = apply(f, d, v[k], v[k + half]);
    *acc = f(*acc, fold(f, d, v[0]));
    x += depth * kLanes;
    m -= depth * kLanes;
  }
  for (std::int64_t i = 0; i < m; ++i) *acc = f(*acc, x[i]);
}

template <class F, class T>
void columns(const void* raw, std::int64_t m, std::int64_t w, std::int64_t stride, void* raw_acc) {
  const T* x = static_cast<const T*>(raw);
  T* acc = static_cast<T*>(raw_acc);
  if constexpr (std::is_floating_point_v<T>)
    if (stride == 1 && w == 1 && m >= 64) return one_column<F, T>(x, m, acc);
  if (stride == w && w < 32 && m * w >= 512) return narrow_columns<F, T, 64>(x, m, w, acc);
  // Integers give the same result in any order, and small sums of them are rare: one loop less to compile.
  if constexpr (std::is_floating_point_v<T>)
    if (stride == w && w <= 8 && m * w >= 32) return narrow_columns<F, T, 16>(x, m, w, acc);
  wide_columns<F, T>(x, m, w, stride, acc);
}

template <class F>
ReduceLoops arithmetic_loops(DType dtype) {
  return with_dtype(dtype, []<class T>(T) -> ReduceLoops { return {&start<F, T>, &columns<F, T>}; });
}
template <class F>
ReduceLoops logical_loops(DType) {
  return {&start<F, bool>, &columns<F, bool>};
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
#include "ops/kernels/parallel.h"

namespace syncline {
namespace {
HWY_EXPORT(find_loops);

constexpr std::int64_t kWideColumns = 2048;  // from this width on, threads share the columns
constexpr std::int64_t kManyBlocks = 32;     // from this count on, threads share the outputs
constexpr double kNanosecondsPerByte = 0.06;

struct Axis {
  std::int64_t size = 1, stride = 1;
  bool reduced = false;
};

// Merges neighbouring axes of one kind (kept or reduced). The last one or two form the tile; the others are walked.
struct Geometry {
  std::array<Axis, kMaxDims> walked;
  int count = 0;
  std::int64_t m = 1, w = 1;             // the tile
  std::int64_t blocks = 1, repeats = 1;  // products of the kept and of the reduced walked axes
  std::int64_t size_of_element = 1;

  // Offset of the index-th combination of the reduced walked axes if `reduced`, otherwise of the kept ones.
  std::int64_t offset(std::int64_t index, bool reduced) const {
    std::int64_t at = 0;
    for (int i = count - 1; i >= 0 && index > 0; --i) {
      const Axis& axis = walked[static_cast<std::size_t>(i)];
      if (axis.reduced != reduced) continue;
      at += index % axis.size * axis.stride;
      index /= axis.size;
    }
    return at;
  }
  double cost(std::int64_t elements) const {
    return kNanosecondsPerByte * static_cast<double>(elements * size_of_element);
  }
};

Geometry geometry_of(const Shape& shape, const AxisMask& mask, DType dtype) {
  Geometry g;
  g.size_of_element = static_cast<std::int64_t>(size_of(dtype));
  std::int64_t stride = shape.size();
  for (int axis = 0; axis < shape.ndim(); ++axis) {
    if (shape[axis] == 1) continue;
    if (shape[axis] > 0) stride /= shape[axis];
    Axis* last = g.count > 0 ? &g.walked[static_cast<std::size_t>(g.count - 1)] : nullptr;
    if (last != nullptr && last->reduced == mask[axis]) *last = {last->size * shape[axis], stride, last->reduced};
    else g.walked[static_cast<std::size_t>(g.count++)] = {shape[axis], stride, mask[axis]};
  }
  if (g.count > 0 && !g.walked[static_cast<std::size_t>(g.count - 1)].reduced)
    g.w = g.walked[static_cast<std::size_t>(--g.count)].size;
  if (g.count > 0) g.m = g.walked[static_cast<std::size_t>(--g.count)].size;
  for (int i = 0; i < g.count; ++i) {
    const Axis& axis = g.walked[static_cast<std::size_t>(i)];
    (axis.reduced ? g.repeats : g.blocks) *= axis.size;
  }
  return g;
}

// Chunks of one block's reduced rows: of its repeats if there are several, otherwise of the rows of its tile.
kernels::Chunks row_chunks(const Geometry& g) {
  return g.repeats > 1 ? kernels::fixed_chunks(g.repeats, g.cost(g.m * g.w)) : kernels::fixed_chunks(g.m, g.cost(g.w));
}

struct Job {
  const ReduceLoops& loops;
  const Geometry& g;
  const std::byte* x;
  std::byte* y;

  const std::byte* input(std::int64_t element) const { return x + element * g.size_of_element; }
  std::byte* output(std::int64_t element) const { return y + element * g.size_of_element; }

  // Columns [begin, end) of a block, over the repeats [first, last).
  void reduce_columns(std::int64_t block, std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t last,
                      std::byte* acc) const {
    const std::int64_t at = g.offset(block, false) + begin;
    loops.start(acc, end - begin);
    for (std::int64_t r = first; r < last; ++r)
      loops.columns(input(at + g.offset(r, true)), g.m, end - begin, g.w, acc);
  }

  void whole_blocks() const {
    kernels::parallel_for(g.blocks, g.cost(g.repeats * g.m * g.w), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) reduce_columns(b, 0, g.w, 0, g.repeats, output(b * g.w));
    });
  }

  void shared_columns() const {
    for (std::int64_t b = 0; b < g.blocks; ++b)
      kernels::parallel_for(g.w, g.cost(g.repeats * g.m), [&](std::int64_t begin, std::int64_t end) {
        reduce_columns(b, begin, end, 0, g.repeats, output(b * g.w + begin));
      });
  }

  void shared_rows(void* scratch) const {
    const kernels::Chunks chunks = row_chunks(g);
    if (chunks.count <= 1) return whole_blocks();
    for (std::int64_t b = 0; b < g.blocks; ++b) {
      std::byte* partials = static_cast<std::byte*>(scratch);
      kernels::parallel_chunks(chunks, [&](std::int64_t chunk, std::int64_t begin, std::int64_t end) {
        std::byte* acc = partials + chunk * g.w * g.size_of_element;
        if (g.repeats > 1) return reduce_columns(b, 0, g.w, begin, end, acc);
        loops.start(acc, g.w);
        loops.columns(input(g.offset(b, false) + begin * g.w), end - begin, g.w, g.w, acc);
      });
      loops.start(output(b * g.w), g.w);
      loops.columns(partials, chunks.count, g.w, g.w, output(b * g.w));
    }
  }
};

}  // namespace

ReduceLoops reduce_loops(std::string_view op, DType dtype) { return HWY_DYNAMIC_DISPATCH(find_loops)(op, dtype); }

void reduce(const ReduceLoops& loops, const AxisMask& mask, const KernelArgs& k) {
  if (k.in_shape(0).size() == 0) return loops.start(k.out[0], k.out_shape().size());
  const Geometry g = geometry_of(k.in_shape(0), mask, k.in_dtype(0));
  const Job job{loops, g, static_cast<const std::byte*>(k.in[0]), static_cast<std::byte*>(k.out[0])};
  if (g.w >= kWideColumns) job.shared_columns();
  else if (g.blocks >= kManyBlocks) job.whole_blocks();
  else job.shared_rows(k.scratch);
}

std::size_t reduce_scratch(const AxisMask& mask, const Meta& in) {
  if (in.shape.size() == 0) return 0;
  const Geometry g = geometry_of(in.shape, mask, in.dtype);
  if (g.w >= kWideColumns || g.blocks >= kManyBlocks) return 0;
  const std::int64_t count = row_chunks(g).count;
  return count > 1 ? static_cast<std::size_t>(count * g.w * g.size_of_element) : 0;
}

}  // namespace syncline
#endif  // HWY_ONCE
