// A loop over the channels of a pixel, compiled once for each instruction set by Highway's foreach_target.
#if defined(SYNCLINE_CHANNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNCLINE_CHANNELS_INL_H_
#undef SYNCLINE_CHANNELS_INL_H_
#else
#define SYNCLINE_CHANNELS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace syncline::kernels {
namespace HWY_NAMESPACE {

// Calls visit(d, c) for each vector of channels, then for single channels.
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

}  // namespace HWY_NAMESPACE
}  // namespace syncline::kernels
HWY_AFTER_NAMESPACE();

#endif  // per target
