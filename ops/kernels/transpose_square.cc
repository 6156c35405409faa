#include "ops/kernels/transpose_square.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/transpose_square.cc"
#include <hwy/foreach_target.h>  // includes this file once a target
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace syncline::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
void transpose(const std::uint32_t* in, std::int64_t in_stride, std::uint32_t* out, std::int64_t out_stride) {
  for (std::int64_t j = 0; j < kSquare; ++j)
    for (std::int64_t i = 0; i < kSquare; ++i) out[j * out_stride + i] = in[i * in_stride + j];
}
#else
// Blocks of four by four, in registers.
HWY_ATTR void transpose(const std::uint32_t* in, std::int64_t in_stride, std::uint32_t* out, std::int64_t out_stride) {
  const hn::CappedTag<std::uint32_t, 4> d;
  const hn::RepartitionToWide<decltype(d)> pairs;
  for (std::int64_t j = 0; j < kSquare; j += 4) {
    for (std::int64_t i = 0; i < kSquare; i += 4) {
      const std::uint32_t* from = in + i * in_stride + j;
      std::uint32_t* to = out + j * out_stride + i;
      const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + in_stride);
      const auto c = hn::LoadU(d, from + 2 * in_stride), e = hn::LoadU(d, from + 3 * in_stride);
      const auto ab0 = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
      const auto ab1 = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
      const auto ce0 = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
      const auto ce1 = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab0, ce0)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab0, ce0)), d, to + out_stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab1, ce1)), d, to + 2 * out_stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab1, ce1)), d, to + 3 * out_stride);
    }
  }
}
#endif

void transpose_squares(const std::uint32_t* in, std::int64_t in_stride, std::uint32_t* out, std::int64_t out_stride,
                       std::int64_t squares) {
  for (std::int64_t s = 0; s < squares; ++s)
    transpose(in + s * kSquare * in_stride, in_stride, out + s * kSquare, out_stride);
}

}  // namespace HWY_NAMESPACE
}  // namespace syncline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncline::kernels {
namespace {
HWY_EXPORT(transpose_squares);
}

void transpose_squares(const std::uint32_t* in, std::int64_t in_stride, std::uint32_t* out, std::int64_t out_stride,
                       std::int64_t squares) {
  HWY_DYNAMIC_DISPATCH(transpose_squares)(in, in_stride, out, out_stride, squares);
}

}  // namespace syncline::kernels
#endif  // HWY_ONCE
