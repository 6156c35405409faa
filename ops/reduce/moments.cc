// Sums of elements and of their squares in float64, and the mean and variance that follow from them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce/moments.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "ops/reduce/loops.h"

HWY_BEFORE_NAMESPACE();
namespace syncline {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A square of a float32 has no rounding error in float64, so a multiply-add gives the bits of a product and a sum.
struct MomentSums {
  double sum, squares;
};

constexpr std::int64_t kNarrow = 16;        // below this, columns are narrow
constexpr std::int64_t kRowsTogether = 16;  // of narrow operands
constexpr std::int64_t kDepth = kMostInUnit / (kRowsTogether * kNarrow);
constexpr std::int64_t kNear = 4096;  // elements in the first-level cache

// Adds m rows of kWidth columns.
template <std::int64_t kWidth>
HWY_ATTR void add_columns(const float* x, std::int64_t m, std::int64_t stride, MomentSums* acc) {
  const hn::CappedTag<double, static_cast<std::size_t>(kWidth)> d;
  const hn::Rebind<float, decltype(d)> narrow;
  constexpr auto kOne = static_cast<std::int64_t>(hn::MaxLanes(decltype(d)()));
  constexpr std::int64_t kVectors = kWidth / kOne;
  hn::Vec<decltype(d)> sum[kVectors], squares[kVectors];
  for (std::int64_t k = 0; k < kVectors; ++k) sum[k] = squares[k] = hn::Zero(d);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t k = 0; k < kVectors; ++k) {
      const auto value = hn::PromoteTo(d, hn::LoadU(narrow, x + i * stride + k * kOne));
      sum[k] = hn::Add(sum[k], value);
      squares[k] = hn::MulAdd(value, value, squares[k]);
    }
  auto* to = reinterpret_cast<double*>(acc);
  for (std::int64_t k = 0; k < kVectors; ++k, to += 2 * kOne) {
    hn::Vec<decltype(d)> before, squares_before;
    hn::LoadInterleaved2(d, to, before, squares_before);
    hn::StoreInterleaved2(hn::Add(before, sum[k]), hn::Add(squares_before, squares[k]), d, to);
  }
}

HWY_ATTR void add_rows(const float* x, std::int64_t m, std::int64_t w, std::int64_t stride, MomentSums* acc) {
  constexpr std::int64_t kMost = HWY_TARGET <= HWY_AVX3 ? 32 : 16;  // columns whose sums are in registers
  std::int64_t j = 0;
  for (; j + kMost <= w; j += kMost) add_columns<kMost>(x + j, m, stride, acc + j);
  if (j + 16 <= w) add_columns<16>(x + j, m, stride, acc + j), j += 16;
  for (; j + 4 <= w; j += 4) add_columns<4>(x + j, m, stride, acc + j);
  for (; j < w; ++j) add_columns<1>(x + j, m, stride, acc + j);
}

bool is_narrow(std::int64_t whole, std::int64_t w) { return w < kNarrow && whole >= 2 * kRowsTogether; }

std::int64_t moments_unit(std::int64_t whole, std::int64_t w) {
  if (is_narrow(whole, w)) return kRowsTogether * kDepth;
  return w < kWideRow ? std::max(kNear / w, std::min<std::int64_t>(kMostInUnit / w, 32)) : 32;
}

void combine_moments(const void* raw, std::int64_t m, std::int64_t w, void* raw_acc) {
  const auto* parts = static_cast<const MomentSums*>(raw);
  auto* acc = static_cast<MomentSums*>(raw_acc);
  for (std::int64_t i = 0; i < m; ++i, parts += w)
    for (std::int64_t j = 0; j < w; ++j) {
      acc[j].sum += parts[j].sum;
      acc[j].squares += parts[j].squares;
    }
}

// Few columns: 16 rows form one row, whose columns are added up every kDepth rows.
void add_narrow_rows(const float* x, std::int64_t m, std::int64_t w, MomentSums* acc) {
  const std::int64_t together = kRowsTogether * w;
  std::array<MomentSums, kRowsTogether * kNarrow> lane;
  while (m >= kRowsTogether) {
    const std::int64_t depth = std::min(kDepth, m / kRowsTogether);
    std::fill_n(lane.data(), together, MomentSums{});
    add_rows(x, depth, together, together, lane.data());
    combine_moments(lane.data(), kRowsTogether, w, acc);
    x += depth * together;
    m -= depth * kRowsTogether;
  }
  add_rows(x, m, w, w, acc);
}

void start_moments(void* acc, std::int64_t w) { std::fill_n(static_cast<MomentSums*>(acc), w, MomentSums{}); }

void add_moments(const void* raw, std::int64_t m, std::int64_t w, std::int64_t stride, void* raw_acc,
                 std::int64_t whole) {
  const float* x = static_cast<const float*>(raw);
  auto* acc = static_cast<MomentSums*>(raw_acc);
  if (stride == w && is_narrow(whole, w)) return add_narrow_rows(x, m, w, acc);
  // By the units in which callers may divide the rows: each unit is added up first, so the bits are the same.
  for (const std::int64_t unit = moments_unit(whole, stride); m > 0; m -= unit, x += unit * stride)
    add_rows(x, std::min(m, unit), w, stride, acc);
}

ReduceLoops moments_loops() {
  return {&start_moments, &add_moments, &moments_unit, &combine_moments, sizeof(MomentSums)};
}

}  // namespace HWY_NAMESPACE
}  // namespace syncline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/reduce/kernel.h"
#include "ops/reduce/moments.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/config.h"

namespace syncline {
namespace {

HWY_EXPORT(moments_loops);

Expr pair_element(const Expr& pairs, std::int64_t i) { return squeeze(slice_axis(pairs, -1, i, 1), -1); }

// float32 x -> float64 (..., 2): the sums of its elements and of their squares, with the reduced axes as ones.
struct SumsOfMoments : ReductionOp<SumsOfMoments> {
  static constexpr std::string_view kName = "sums_of_moments";
  static ReduceLoops loops_of(DType) { return HWY_DYNAMIC_DISPATCH(moments_loops)(); }
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    SYNCLINE_CHECK(in[0].dtype == DType::kFloat32 && a.keepdims);
    Shape shape = reduced_shape(in[0].shape, mask_of(a, in[0].shape), true);
    shape.push_back(2);
    return {DType::kFloat64, std::move(shape)};
  }
  static Placed place(const Attrs& a, const PlaceArgs& args) {
    if (args.at[0].is_partial()) return gathered(args);  // squares are not linear
    return place_reduction(kName, a, args, Placement::partial());
  }
  static Expr simplify(const Attrs&, std::span<const Expr>, const Meta&) { return {}; }
  // dsum + 2 * x * dsquares, written as (dsum + 2 * c * dsquares) + (x - c) * 2 * dsquares, which is the same for every
  // constant c: with c = mean, float32 keeps the digits of x - mean.
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    const Expr& x = y.input(0);
    const Expr c = stop_gradient(cast(pair_element(y, 0) / count(x, a.axes, y.dtype()), x.dtype()));
    const Expr slope = pair_element(dy, 1) * 2.0;
    const Expr shift = pair_element(dy, 0) + slope * cast(c, y.dtype());
    return {broadcast_like(cast(shift, x.dtype()), x) + (x - c) * broadcast_like(cast(slope, x.dtype()), x)};
  }
};

SYNCLINE_REGISTER_OP(SumsOfMoments)

}  // namespace

// In float64, the difference of the mean square and the squared mean keeps float32's digits of the variance while the
// mean is below 1e4 standard deviations, so one pass does, and over ranks one transfer. float64 values take a second
// pass, over x - mean.
Moments moments_of(const Expr& x, const Axes& axes) {
  const DType dtype = is_floating(x.dtype()) ? x.dtype() : current_config().floatx;
  if (dtype == DType::kFloat64 || x.ndim() == kMaxDims) {
    // The same for every constant c. With c = average, the average's gradient takes no sum over x.
    const Expr average = mean(x, axes, /*keepdims=*/true), c = stop_gradient(average);
    return {average, mean(square(x - c), axes, /*keepdims=*/true) - square(average - c)};
  }
  const Expr sums = apply<SumsOfMoments>({cast(x, DType::kFloat32)}, {axes.of(x.ndim()), /*keepdims=*/true});
  const Expr n = count(x, axes, DType::kFloat64);
  const Expr average = pair_element(sums, 0) / n, variance = pair_element(sums, 1) / n - square(average);
  return {cast(average, dtype), cast(maximum(variance, scalar_like(0, variance)), dtype)};
}

}  // namespace syncline
#endif  // HWY_ONCE
