// The digest of a checkpoint's contents: XXH3 with 128 bits, for telling damage, not for security. It runs at the speed
// of memory, several times that of CRC-32 or SHA-256, and two contents that differ by accident have different digests.
// base/digest.h is for short texts, byte by byte.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace syncline::io {

// 32 hexadecimal digits, as `xxhsum -H2` prints them. Thread-safe.
std::string content_digest(std::span<const std::byte> bytes);

// The same of bytes that come piece by piece: large arrays are digested while they are in the processor's cache, on
// their way from or to the disk. Not thread-safe.
class RunningDigest {
 public:
  RunningDigest();
  ~RunningDigest();
  RunningDigest(const RunningDigest&) = delete;
  RunningDigest& operator=(const RunningDigest&) = delete;

  void add(std::span<const std::byte> bytes);
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace syncline::io
