// The digest of a checkpoint's contents: XXH3 with 128 bits, for telling damage, not for security. It runs at the speed
// of memory, several times that of CRC-32 or SHA-256, and two contents that differ by accident have different digests.
// base/digest.h is for short texts, byte by byte.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace syncline::io {

// 32 hexadecimal digits, as `xxhsum -H2` prints them. Thread-safe.
std::string content_digest(std::span<const std::byte> bytes);

}  // namespace syncline::io
