// Philox4x32-10: maps a counter and a key to four random words. J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw:
// Parallel Random Numbers: As Easy as 1, 2, 3. SC 2011. draw.cc has a vectorized version.
#pragma once

#include <array>
#include <cstdint>

namespace syncline::philox {

inline constexpr int kRounds = 10;
inline constexpr std::uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
inline constexpr std::uint32_t kKeyStep0 = 0x9E3779B9, kKeyStep1 = 0xBB67AE85;

using Words = std::array<std::uint32_t, 4>;

constexpr Words philox4x32(Words c, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t p0 = std::uint64_t{kMultiplier0} * c[0], p1 = std::uint64_t{kMultiplier1} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key = {key[0] + kKeyStep0, key[1] + kKeyStep1};
  }
  return c;
}

}  // namespace syncline::philox
