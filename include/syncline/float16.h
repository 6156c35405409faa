// Float16: the IEEE 754 half-precision format as a storage type. It has no arithmetic: code widens values, computes,
// and rounds the result. Conversions round to the nearest, ties to even; a magnitude of 65520 or more becomes infinity,
// NaN stays NaN. Conversions use plain integer and float operations: results are equal on every compiler and machine,
// and, without branches, loops over them vectorize.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#pragma GCC visibility push(default)
namespace syncline {

struct Float16 {
  std::uint16_t bits = 0;

  constexpr Float16() = default;
  constexpr explicit Float16(float value) : bits(round(value)) {}
  constexpr explicit Float16(double value) : bits(round(round_to_odd(value))) {}
  // Integers that float cannot represent exactly are far beyond the largest half, so rounding twice is safe.
  template <class Integer>
  requires std::is_integral_v<Integer>
  constexpr explicit Float16(Integer value) : bits(round(static_cast<float>(value))) {}

  static constexpr Float16 from_bits(std::uint16_t bits) {
    Float16 half;
    half.bits = bits;
    return half;
  }

  constexpr explicit operator float() const {
    const std::uint32_t sign = (std::uint32_t{bits} & 0x8000u) << 16, rest = bits & 0x7fffu;
    constexpr std::uint32_t kBias = 127 - 15;  // difference of the exponent biases; added twice for infinity and NaN
    const std::uint32_t normal = (rest << 13) + (kBias << 23);
    const auto subnormal = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(rest)) * 0x1p-24f);
    const std::uint32_t special = normal + (kBias << 23);
    return std::bit_cast<float>(sign | (rest < 0x0400u ? subnormal : rest < 0x7c00u ? normal : special));
  }
  constexpr explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }

 private:
  static constexpr std::uint16_t round(float value) {
    const auto all = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = all >> 16 & 0x8000u, rest = all & 0x7fffffffu;
    // Add half of the last kept place, less one if that place is even. A carry propagates into the exponent.
    const std::uint32_t normal = (rest + 0x0fffu + (rest >> 13 & 1u) - ((127u - 15u) << 23)) >> 13;
    // The smallest half is 2^-24, the last place of floats in [0.5, 1): adding 0.5 rounds to it.
    const float magnitude = std::bit_cast<float>(rest < 0x38800000u ? rest : 0u);
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(magnitude + 0.5f) - 0x3f000000u;
    const std::uint32_t special = rest > 0x7f800000u ? 0x7e00u : 0x7c00u;
    const std::uint32_t half = rest < 0x38800000u ? subnormal : rest < 0x477ff000u ? normal : special;
    return static_cast<std::uint16_t>(sign | half);
  }

  // The float next to `value` towards zero, with its last bit set unless exact. Rounding this float to half gives the
  // same result as rounding `value` directly.
  static constexpr float round_to_odd(double value) {
    const auto nearest = static_cast<float>(value);
    const double wide = nearest;
    if (wide == value || value != value || wide - wide != 0) return nearest;
    const bool away = value < 0 ? wide < value : wide > value;
    return std::bit_cast<float>((std::bit_cast<std::uint32_t>(nearest) - (away ? 1u : 0u)) | 1u);
  }
};

}  // namespace syncline
#pragma GCC visibility pop
