// Conversion between big-endian and little-endian elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace syncline::io {

// Reverses the bytes of each element of `width` bytes: 2, 4 or 8, else a no-op. bytes.size() must be a multiple of
// `width`. Thread-safe.
inline void swap_bytes(std::span<std::byte> bytes, std::size_t width) {
  const auto each = [&]<class Word>(Word, auto swapped) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(Word)) {
      Word word;
      std::memcpy(&word, &bytes[at], sizeof word);
      word = swapped(word);
      std::memcpy(&bytes[at], &word, sizeof word);
    }
  };
  if (width == 2) each(std::uint16_t{}, [](std::uint16_t x) { return __builtin_bswap16(x); });
  else if (width == 4) each(std::uint32_t{}, [](std::uint32_t x) { return __builtin_bswap32(x); });
  else if (width == 8) each(std::uint64_t{}, [](std::uint64_t x) { return __builtin_bswap64(x); });
}

}  // namespace syncline::io
