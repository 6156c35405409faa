#include "ops/kernels/copy/transpose_square.h"

#include <hwy/cache_control.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/copy/transpose_square.cc"
#include <hwy/foreach_target.h>  // includes this file once a target
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace syncline::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
template <bool kStream>
void transpose(const std::uint32_t* in, std::int64_t in_stride, std::uint32_t* out, std::int64_t out_stride) {
  for (std::int64_t j = 0; j < kSquare; ++j)
    for (std::int64_t i = 0; i < kSquare; ++i) out[j * out_stride + i] = in[i * in_stride + j];
}
#elif HWY_TARGET == HWY_AVX3
// Transposes a whole square in registers: 4x4 elements within each 128-bit block, then the blocks. Each cache line of
// either side is accessed once; with power-of-two strides, lines would be evicted between accesses.
using Row = hn::Vec<hn::FixedTag<std::uint32_t, 16> >;

template <bool kStream>
HWY_INLINE void store_row(Row row, std::uint32_t* to) {
  const hn::FixedTag<std::uint32_t, 16> d;
  if constexpr (kStream) hn::Stream(row, d, to);
  else hn::StoreU(row, d, to);
}

template <bool kStream>
HWY_ATTR void transpose(const std::uint32_t* in, std::int64_t in_stride, std::uint32_t* out, std::int64_t out_stride) {
  const hn::FixedTag<std::uint32_t, 16> d;
  const hn::RepartitionToWide<decltype(d)> pairs;
  Row v[4][4];  // v[i][j]: column j of each block of rows 4 i to 4 i + 3
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t* from = in + 4 * i * in_stride;
    const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + in_stride);
    const auto c = hn::LoadU(d, from + 2 * in_stride), e = hn::LoadU(d, from + 3 * in_stride);
    const auto ab0 = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
    const auto ab1 = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
    const auto ce0 = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
    const auto ce1 = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
    v[i][0] = hn::BitCast(d, hn::InterleaveLower(pairs, ab0, ce0));
    v[i][1] = hn::BitCast(d, hn::InterleaveUpper(pairs, ab0, ce0));
    v[i][2] = hn::BitCast(d, hn::InterleaveLower(pairs, ab1, ce1));
    v[i][3] = hn::BitCast(d, hn::InterleaveUpper(pairs, ab1, ce1));
  }
  for (int j = 0; j < 4; ++j) {
    const Row even0 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(v[1][j]), v[0][j]);
    const Row odd0 = hn::OddEvenBlocks(v[1][j], hn::SwapAdjacentBlocks(v[0][j]));
    const Row even1 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(v[3][j]), v[2][j]);
    const Row odd1 = hn::OddEvenBlocks(v[3][j], hn::SwapAdjacentBlocks(v[2][j]));
    store_row<kStream>(hn::ConcatLowerLower(d, even1, even0), out + j * out_stride);
    store_row<kStream>(hn::ConcatLowerLower(d, odd1, odd0), out + (4 + j) * out_stride);
    store_row<kStream>(hn::ConcatUpperUpper(d, even1, even0), out + (8 + j) * out_stride);
    store_row<kStream>(hn::ConcatUpperUpper(d, odd1, odd0), out + (12 + j) * out_stride);
  }
}
#else
// Transposes 4x4 blocks in registers.
template <bool kStream>
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

template <bool kStream>
HWY_ATTR void row_of_squares(const std::uint32_t* in, std::int64_t in_stride, std::uint32_t* out,
                             std::int64_t out_stride, std::int64_t squares) {
  constexpr std::int64_t kAhead = 2;  // squares to prefetch ahead
  for (std::int64_t s = 0; s < squares; ++s) {
    const std::uint32_t* from = in + s * kSquare * in_stride;
    if (s + kAhead < squares)
      for (std::int64_t i = 0; i < kSquare; ++i) __builtin_prefetch(from + (kAhead * kSquare + i) * in_stride);
    transpose<kStream>(from, in_stride, out + s * kSquare, out_stride);
  }
  if (kStream) hwy::FlushStream();
}

void transpose_squares(const std::uint32_t* in, std::int64_t in_stride, std::uint32_t* out, std::int64_t out_stride,
                       std::int64_t squares, bool stream) {
  if (stream) row_of_squares<true>(in, in_stride, out, out_stride, squares);
  else row_of_squares<false>(in, in_stride, out, out_stride, squares);
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
                       std::int64_t squares, bool stream) {
  const bool whole_lines = reinterpret_cast<std::uintptr_t>(out) % 64 == 0 && out_stride % kSquare == 0;
  HWY_DYNAMIC_DISPATCH(transpose_squares)(in, in_stride, out, out_stride, squares, stream && whole_lines);
}

}  // namespace syncline::kernels
#endif  // HWY_ONCE
