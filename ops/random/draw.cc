// Philox for a vector of counters, and conversion of its words to masks, uniform and normal numbers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/random/draw.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "ops/random/draw.h"
#include "ops/random/philox.h"

HWY_BEFORE_NAMESPACE();
namespace syncline {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D64 = hn::ScalableTag<std::uint64_t>;
using V64 = hn::Vec<D64>;

// The state of one counter per lane. Each word is the low half of a 64-bit lane; the high half is unspecified.
struct State {
  // An implicit constructor would lack the target's instructions, which those of NEON's vectors need.
  HWY_INLINE HWY_ATTR State() {}
  HWY_INLINE HWY_ATTR State(V64 w0, V64 w1, V64 w2, V64 w3) : c0(w0), c1(w1), c2(w2), c3(w3) {}
  V64 c0, c1, c2, c3;
};

// Returns the 64-bit products of the low halves.
template <class V>
HWY_INLINE HWY_ATTR V multiply_low(V x, V multiplier) {
  const hn::DFromV<V> d;
  if constexpr (HWY_TARGET == HWY_SCALAR) {
    return hn::Mul(hn::And(x, hn::Set(d, 0xFFFFFFFFu)), multiplier);
  } else {
    const hn::RepartitionToNarrow<decltype(d)> d32;
    return hn::MulEven(hn::BitCast(d32, x), hn::BitCast(d32, multiplier));
  }
}

HWY_INLINE HWY_ATTR void philox_round(State& s, V64 m0, V64 m1, V64 k0, V64 k1) {
  const V64 p0 = multiply_low(s.c0, m0), p1 = multiply_low(s.c2, m1);
  s.c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), s.c1), k0);
  s.c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), s.c3), k1);
  s.c1 = p1;
  s.c3 = p0;
}

HWY_INLINE HWY_ATTR void store_words(const State& s, std::uint32_t* words) {
  const D64 d;
  const V64 low = hn::Set(d, 0xFFFFFFFFu);
  const V64 first = hn::Or(hn::And(s.c0, low), hn::ShiftLeft<32>(s.c1));
  const V64 second = hn::Or(hn::And(s.c2, low), hn::ShiftLeft<32>(s.c3));
  hn::StoreInterleaved2(first, second, d, reinterpret_cast<std::uint64_t*>(words));
}

constexpr std::int64_t kChains = 4;          // independent vectors that hide the latency of the products
constexpr std::int64_t kBufferWords = 1024;  // stays in the first-level cache

// Fills blocks [first, first + blocks), rounded up to a multiple of kChains vectors: at most kBufferWords words.
HWY_ATTR void philox_blocks(const Stream& stream, std::uint64_t first, std::int64_t blocks, std::uint32_t* words) {
  const D64 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V64 m0 = hn::Set(d, philox::kMultiplier0), m1 = hn::Set(d, philox::kMultiplier1);
  const auto step_low = hn::Set(d, stream.step), step_high = hn::Set(d, stream.step >> 32);
  for (std::int64_t b = 0; b < blocks; b += kChains * lanes) {
    State s[kChains];
    for (std::int64_t i = 0; i < kChains; ++i) {
      const V64 counter = hn::Add(hn::Set(d, first + static_cast<std::uint64_t>(b + i * lanes)), hn::Iota(d, 0));
      s[i] = {counter, hn::ShiftRight<32>(counter), step_low, step_high};
    }
    auto k0 = static_cast<std::uint32_t>(stream.key), k1 = static_cast<std::uint32_t>(stream.key >> 32);
    for (int round = 0; round < philox::kRounds; ++round) {
      const V64 v0 = hn::Set(d, k0), v1 = hn::Set(d, k1);
      for (State& state : s) philox_round(state, m0, m1, v0, v1);
      k0 += philox::kKeyStep0;
      k1 += philox::kKeyStep1;
    }
    for (std::int64_t i = 0; i < kChains; ++i) store_words(s[i], words + 4 * (b + i * lanes));
  }
}

// Draws one buffer of words at a time and calls convert(words, values, word count) on it, which fills at most
// kBufferWords / kWords values.
template <int kWords, class T, class Convert>
HWY_INLINE HWY_ATTR void draw(const Stream& stream, std::uint64_t first, std::int64_t n, T* out, Convert convert) {
  constexpr std::int64_t kPerBlock = 4 / kWords;
  alignas(64) std::uint32_t words[kBufferWords];
  alignas(64) T values[kBufferWords / kWords];
  while (n > 0) {
    const auto skip = static_cast<std::int64_t>(first % kPerBlock);
    const std::int64_t count = std::min(n, kBufferWords / kWords - skip);
    const std::int64_t blocks = (skip + count + kPerBlock - 1) / kPerBlock;
    philox_blocks(stream, first / kPerBlock, blocks, words);
    convert(words, values, blocks * 4);
    std::memcpy(out, values + skip, static_cast<std::size_t>(count) * sizeof(T));
    first += static_cast<std::uint64_t>(count);
    out += count;
    n -= count;
  }
}

// Conversions process whole vectors, all of which philox_blocks has filled. Values after `count` are ignored.

HWY_ATTR void mask_at(const Stream& stream, std::uint64_t first, std::int64_t n, std::uint32_t threshold, bool* out) {
  static_assert(sizeof(bool) == 1);
  draw<1>(stream, first, n, out, [=](const std::uint32_t* words, bool* values, std::int64_t count) HWY_ATTR {
    const hn::ScalableTag<std::uint32_t> d;
    const hn::Rebind<std::uint8_t, decltype(d)> d8;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto bound = hn::Set(d, threshold), one = hn::Set(d, 1u);
    for (std::int64_t i = 0; i < count; i += lanes) {
      const auto kept = hn::IfThenZeroElse(hn::Gt(bound, hn::Load(d, words + i)), one);
      hn::Store(hn::TruncateTo(d8, kept), d8, reinterpret_cast<std::uint8_t*>(values + i));
    }
  });
}

HWY_ATTR void uniform_at_f32(const Stream& stream, std::uint64_t first, std::int64_t n, float* out) {
  draw<1>(stream, first, n, out, [](const std::uint32_t* words, float* values, std::int64_t count) HWY_ATTR {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> di;
    const hn::RebindToUnsigned<decltype(d)> du;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto unit = hn::Set(d, 0x1p-24F);
    for (std::int64_t i = 0; i < count; i += lanes) {
      const auto bits = hn::BitCast(di, hn::ShiftRight<8>(hn::Load(du, words + i)));
      hn::Store(hn::Mul(hn::ConvertTo(d, bits), unit), d, values + i);
    }
  });
}

HWY_ATTR void uniform_at_f64(const Stream& stream, std::uint64_t first, std::int64_t n, double* out) {
  draw<2>(stream, first, n, out, [](const std::uint32_t* words, double* values, std::int64_t count) HWY_ATTR {
    for (std::int64_t i = 0; i < count / 2; ++i) {
      const std::uint64_t bits = words[2 * i] | std::uint64_t{words[2 * i + 1]} << 32;
      values[i] = static_cast<double>(static_cast<std::int64_t>(bits >> 11)) * 0x1p-53;
    }
  });
}

// Box-Muller: a radius from u in (0, 1] and an angle from v in [0, 1) give two independent numbers.
template <class D, class V, class T = hn::TFromD<D>>
HWY_INLINE HWY_ATTR void store_normals(D d, V u, V v, T* values) {
  const auto square = hn::Max(hn::Mul(hn::Set(d, T{-2}), hn::Log(d, u)), hn::Zero(d));
  const auto radius = hn::Sqrt(square);
  const auto angle = hn::Mul(v, hn::Set(d, static_cast<T>(6.283185307179586476925286766559)));
  hn::StoreInterleaved2(hn::Mul(radius, hn::Cos(d, angle)), hn::Mul(radius, hn::Sin(d, angle)), d, values);
}

HWY_ATTR void normal_at_f32(const Stream& stream, std::uint64_t first, std::int64_t n, float* out) {
  draw<1>(stream, first, n, out, [](const std::uint32_t* words, float* values, std::int64_t count) HWY_ATTR {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> di;
    const hn::RebindToUnsigned<decltype(d)> du;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (std::int64_t i = 0; i < count; i += 2 * lanes) {
      hn::VFromD<decltype(du)> a, b;
      hn::LoadInterleaved2(du, words + i, a, b);
      // Round 31 bits: small u, which give large numbers, keep 24 significant bits.
      const auto whole = hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<1>(a)));
      const auto u = hn::Mul(hn::Add(whole, hn::Set(d, 0.5F)), hn::Set(d, 0x1p-31F));
      const auto v = hn::Mul(hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<8>(b))), hn::Set(d, 0x1p-24F));
      store_normals(d, u, v, values + i);
    }
  });
}

HWY_ATTR void normal_at_f64(const Stream& stream, std::uint64_t first, std::int64_t n, double* out) {
  draw<2>(stream, first, n, out, [](const std::uint32_t* words, double* values, std::int64_t count) HWY_ATTR {
    const hn::ScalableTag<double> d;
    const hn::RebindToUnsigned<decltype(d)> du;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    // Use 52 bits as the fraction of a number in [1, 2).
    const auto fraction = [&](auto bits) HWY_ATTR {
      return hn::BitCast(d, hn::Or(hn::ShiftRight<12>(bits), hn::BitCast(du, hn::Set(d, 1.0))));
    };
    for (std::int64_t i = 0; i < count / 2; i += 2 * lanes) {
      hn::VFromD<decltype(du)> a, b;
      hn::LoadInterleaved2(du, reinterpret_cast<const std::uint64_t*>(words + 2 * i), a, b);
      const auto u = hn::Sub(hn::Set(d, 2.0), fraction(a)), v = hn::Sub(fraction(b), hn::Set(d, 1.0));
      store_normals(d, u, v, values + i);
    }
  });
}

HWY_ATTR void words_at(const Stream& stream, std::uint64_t first_block, std::int64_t blocks, std::uint32_t* words) {
  draw<1>(stream, first_block * 4, blocks * 4, words,
          [](const std::uint32_t* drawn, std::uint32_t* values, std::int64_t count)
              HWY_ATTR { std::memcpy(values, drawn, static_cast<std::size_t>(count) * sizeof(std::uint32_t)); });
}

}  // namespace HWY_NAMESPACE
}  // namespace syncline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncline {
namespace {
HWY_EXPORT(words_at);
HWY_EXPORT(mask_at);
HWY_EXPORT(uniform_at_f32);
HWY_EXPORT(uniform_at_f64);
HWY_EXPORT(normal_at_f32);
HWY_EXPORT(normal_at_f64);

// The finalizer of SplitMix64: adjacent seeds and ops get unrelated keys.
std::uint64_t scramble(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

Stream stream_of(const RandomOp& op, std::uint64_t step) { return {scramble(scramble(op.seed) + op.op), step}; }

void draw_words(const Stream& stream, std::uint64_t first_block, std::int64_t blocks, std::uint32_t* words) {
  HWY_DYNAMIC_DISPATCH(words_at)(stream, first_block, blocks, words);
}
void draw_mask(const Stream& stream, std::uint64_t first, std::int64_t n, std::uint32_t threshold, bool* out) {
  HWY_DYNAMIC_DISPATCH(mask_at)(stream, first, n, threshold, out);
}
void draw_uniform(const Stream& stream, std::uint64_t first, std::int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(uniform_at_f32)(stream, first, n, out);
}
void draw_uniform(const Stream& stream, std::uint64_t first, std::int64_t n, double* out) {
  HWY_DYNAMIC_DISPATCH(uniform_at_f64)(stream, first, n, out);
}
void draw_normal(const Stream& stream, std::uint64_t first, std::int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(normal_at_f32)(stream, first, n, out);
}
void draw_normal(const Stream& stream, std::uint64_t first, std::int64_t n, double* out) {
  HWY_DYNAMIC_DISPATCH(normal_at_f64)(stream, first, n, out);
}

}  // namespace syncline
#endif  // HWY_ONCE
