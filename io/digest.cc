#include "io/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace syncline::io {

std::string content_digest(std::span<const std::byte> bytes) {
  XXH128_canonical_t canonical;  // most significant byte first on every machine
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  std::string text;
  for (const unsigned char byte : canonical.digest) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace syncline::io
