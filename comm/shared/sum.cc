#include "comm/shared/sum.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/shared/sum.cc"
#include <hwy/foreach_target.h>  // includes this file once a target
#include <hwy/highway.h>

// Plain loops: the compiler vectorizes them for each target.
HWY_BEFORE_NAMESPACE();
namespace syncline::comm {
namespace HWY_NAMESPACE {

template <Reduce kReduce, class T>
HWY_ATTR HWY_INLINE T combine(T a, T b) {
  // A NaN wins, as in the kernels of max and min.
  if constexpr (kReduce == Reduce::kMax) return a > b || a != a ? a : b;
  else if constexpr (kReduce == Reduce::kMin) return a < b || a != a ? a : b;
  else if constexpr (std::is_floating_point_v<T>) return a + b;
  // Unsigned, so that it wraps.
  else return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

// The common case of two ranks on a node: a single pass writes both buffers.
template <Reduce kReduce, class T>
HWY_ATTR void reduce_pair(T* a, T* b, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) a[i] = b[i] = combine<kReduce>(a[i], b[i]);
}

template <Reduce kReduce, class T>
HWY_ATTR void add(const T* a, const T* b, T* sum, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) sum[i] = combine<kReduce>(a[i], b[i]);
}

// Works in blocks: a block's sums stay in the first-level cache until all terms are added. Value p of the stack is a
// term, or a sum in sums[p], never in the terms' memory: terms and targets may lie at equal places of different pages,
// which slows loads behind stores. `kBytes`: of a block. `kSums`: the most sums at a time, one less than the values on
// the stack. An order has at most as many values as terms, and at most one more than the height of the tree.
template <Reduce kReduce, std::size_t kSums, std::size_t kBytes, class T>
HWY_ATTR void reduce_blocks(std::span<const int> order, const void* const* from, std::span<void* const> targets,
                            std::int64_t count) {
  constexpr std::int64_t kBlock = kBytes / sizeof(T);
  alignas(64) T sums[kSums][kBlock];
  const T* stack[kSums + 1];
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t here = std::min(kBlock, count - begin);
    std::size_t size = 0;
    for (const int step : order) {
      if (step != kAdd) {
        stack[size++] = static_cast<const T*>(from[step]) + begin;
        continue;
      }
      --size;
      add<kReduce>(stack[size - 1], stack[size], sums[size - 1], here);
      stack[size - 1] = sums[size - 1];
    }
    for (void* target : targets)
      if (T* block = static_cast<T*>(target) + begin; block != stack[0])
        std::memcpy(block, stack[0], static_cast<std::size_t>(here) * sizeof(T));
  }
}

template <Reduce kReduce, class T>
HWY_ATTR void reduce_terms(std::span<const int> order, const void* const* from, std::span<void* const> targets,
                           std::int64_t count) {
  if (order.size() == 3 && targets.size() == 2 && targets[0] == from[0] && targets[1] == from[1])
    return reduce_pair<kReduce>(static_cast<T*>(targets[0]), static_cast<T*>(targets[1]), count);
  // Four terms take little of a thread's stack.
  if (order.size() <= 7) return reduce_blocks<kReduce, 3, 8192, T>(order, from, targets, count);
  return reduce_blocks<kReduce, 24, 8192, T>(order, from, targets, count);
}

void reduce(DType dtype, Reduce reduce, std::span<const int> order, const void* const* from, std::span<void* const> to,
            std::int64_t count) {
  with_dtype(dtype, [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>) {
      switch (reduce) {
        case Reduce::kSum: return reduce_terms<Reduce::kSum, T>(order, from, to, count);
        case Reduce::kMax: return reduce_terms<Reduce::kMax, T>(order, from, to, count);
        case Reduce::kMin: return reduce_terms<Reduce::kMin, T>(order, from, to, count);
      }
    }
    fail<InternalError>("no reduction ", static_cast<int>(reduce), " of ", dtype);
  });
}

// For up to 256 terms, on little stack.
void add_terms(DType dtype, std::span<const int> order, const void* const* from, void* sum, std::int64_t count) {
  with_dtype(dtype, [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>)
      return reduce_blocks<Reduce::kSum, 8, 4096, T>(order, from, std::span(&sum, 1), count);
    fail<InternalError>("no sum of ", dtype);
  });
}

HWY_ATTR void to_float16(const float* from, std::uint16_t* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = Float16(from[i]).bits;
}
HWY_ATTR void from_float16(const std::uint16_t* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(Float16::from_bits(from[i]));
}
HWY_ATTR void to_bfloat16(const float* from, std::uint16_t* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(from[i]);
    const std::uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    // Rounding would turn some NaNs into infinity or zero.
    to[i] = static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded >> 16);
  }
}
HWY_ATTR void from_bfloat16(const std::uint16_t* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = std::bit_cast<float>(std::uint32_t{from[i]} << 16);
}

}  // namespace HWY_NAMESPACE
}  // namespace syncline::comm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncline::comm {
namespace {
HWY_EXPORT(reduce);
HWY_EXPORT(add_terms);
HWY_EXPORT(to_float16);
HWY_EXPORT(from_float16);
HWY_EXPORT(to_bfloat16);
HWY_EXPORT(from_bfloat16);
}  // namespace

void reduce_into(DType dtype, Reduce op, const SumOrder& order, std::span<const void* const> from, void* to,
                 std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(reduce)(dtype, op, order, from.data(), std::span(&to, 1), count);
}

void reduce_in_place(DType dtype, Reduce op, const SumOrder& order, std::span<void* const> buffers,
                     std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(reduce)(dtype, op, order, buffers.data(), buffers, count);
}

RankSum::RankSum(int ranks) {
  if (ranks < 1 || ranks > kMostRanks) fail<ValueError>("RankSum: there are ", ranks, " ranks; give 1 to ", kMostRanks);
  std::vector<Block> places;
  for (int rank = 0; rank < ranks; ++rank) places.push_back({first_place(rank, ranks), first_place(rank + 1, ranks)});
  order_ = order_of(places);
}

void RankSum::operator()(DType dtype, std::span<const void* const> terms, void* sum, std::int64_t count) const {
  SYNCLINE_CHECK(2 * terms.size() == order_.size() + 1);
  HWY_DYNAMIC_DISPATCH(add_terms)(dtype, order_, terms.data(), sum, count);
}

std::int64_t wire_width(DType dtype, WireFormat format) {
  if (dtype == DType::kFloat32 && format != WireFormat::kSame) return 2;
  return static_cast<std::int64_t>(size_of(dtype));
}

void to_wire(WireFormat format, const float* from, std::uint16_t* to, std::int64_t count) {
  if (format == WireFormat::kFloat16) HWY_DYNAMIC_DISPATCH(to_float16)(from, to, count);
  else HWY_DYNAMIC_DISPATCH(to_bfloat16)(from, to, count);
}

void from_wire(WireFormat format, const std::uint16_t* from, float* to, std::int64_t count) {
  if (format == WireFormat::kFloat16) HWY_DYNAMIC_DISPATCH(from_float16)(from, to, count);
  else HWY_DYNAMIC_DISPATCH(from_bfloat16)(from, to, count);
}

}  // namespace syncline::comm
#endif  // HWY_ONCE
