// FNV-1a: a digest, equal on every rank and machine. It detects accidental differences; it is not secure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace syncline {

inline constexpr std::uint64_t kEmptyDigest = 14695981039346656037ULL;

// Extends `digest`, that of the bytes so far, by `size` bytes.
inline std::uint64_t digest_bytes(const void* bytes, std::size_t size, std::uint64_t digest = kEmptyDigest) {
  const auto* p = static_cast<const unsigned char*>(bytes);
  for (std::size_t i = 0; i < size; ++i) digest = (digest ^ p[i]) * 1099511628211ULL;
  return digest;
}

}  // namespace syncline
