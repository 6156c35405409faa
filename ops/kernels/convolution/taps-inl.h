// Helpers shared by vectorized convolution and pooling: taps inside an image, loops over channels. Highway's
// foreach_target compiles this file once per instruction set.
#if defined(SYNCLINE_TAPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNCLINE_TAPS_INL_H_
#undef SYNCLINE_TAPS_INL_H_
#else
#define SYNCLINE_TAPS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "ops/kernels/convolution/conv.h"

HWY_BEFORE_NAMESPACE();
namespace syncline::kernels {
namespace HWY_NAMESPACE {

// A range of kernel rows, kernel columns or pixels.
struct Range {
  std::int64_t begin, end;

  bool operator==(const Range&) const = default;
};

// Returns the taps along one axis that lie inside the image. Tap 0 is at pixel `start`, which may be outside.
// NOINLINE: if this or interior_columns is inlined, g++ 12 spills accumulators of some tiles to memory
// (tests/house/check_tiles.py).
HWY_NOINLINE inline Range taps_inside(std::int64_t start, std::int64_t taps, std::int64_t dilation, std::int64_t size) {
  Range r{0, taps};
  while (r.begin < taps && start + r.begin * dilation < 0) ++r.begin;
  while (r.end > r.begin && start + (r.end - 1) * dilation >= size) --r.end;
  return r;
}

// Returns the output columns whose taps all lie inside the image.
HWY_NOINLINE inline Range interior_columns(const ConvGeometry& g) {
  const std::int64_t begin = std::clamp<std::int64_t>((g.pad_left + g.stride_w - 1) / g.stride_w, 0, g.out_w);
  const std::int64_t room = g.in_w - 1 - (g.k_w - 1) * g.dilation_w + g.pad_left;
  const std::int64_t end = room < 0 ? 0 : std::min(g.out_w, room / g.stride_w + 1);
  return {begin, std::max(begin, end)};
}

// Calls visit(d, c) for each full vector of channels, then for each remaining channel.
template <class T, class Visit>
HWY_INLINE void for_channels(std::int64_t channels, const Visit& visit) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<T> wide;
  const hn::CappedTag<T, 1> one;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(wide));
  std::int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) visit(wide, c);
  for (; c < channels; ++c) visit(one, c);
}

inline constexpr std::int64_t kGroup = 4;  // vectors

// Calls visit(d, vectors, c) for groups of kGroup full vectors of channels, then as for_channels with one vector each;
// `vectors` is an integral constant.
template <class T, class Visit>
HWY_INLINE void for_channel_groups(std::int64_t channels, const Visit& visit) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<T> wide;
  const auto group = kGroup * static_cast<std::int64_t>(hn::Lanes(wide));
  std::int64_t c = 0;
  for (; c + group <= channels; c += group) visit(wide, std::integral_constant<int, kGroup>(), c);
  for_channels<T>(channels - c, [&](auto d, std::int64_t i) { visit(d, std::integral_constant<int, 1>(), c + i); });
}

}  // namespace HWY_NAMESPACE
}  // namespace syncline::kernels
HWY_AFTER_NAMESPACE();

#endif  // per target
