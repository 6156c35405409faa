// FNV-1a: a digest that is the same on every rank and machine. For telling accidents apart, not for security.
#pragma once

#include <cstddef>
#include <cstdint>

namespace syncline {

inline constexpr std::uint64_t kEmptyDigest = 14695981039346656037ULL;

// Of the bytes so far (`digest`) and `size` more.
inline std::uint64_t digest_bytes(const void* bytes, std::size_t size, std::uint64_t digest = kEmptyDigest) {
  const auto* p = static_cast<const unsigned char*>(bytes);
  for (std::size_t i = 0; i < size; ++i) digest = (digest ^ p[i]) * 1099511628211ULL;
  return digest;
}

}  // namespace syncline
