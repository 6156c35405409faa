// The digest of checkpoint contents: 128-bit XXH3, which detects damage but gives no security. It runs at memory speed,
// several times faster than CRC-32 or SHA-256. Accidental collisions are negligible. base/digest.h, which works byte
// by byte, is for short texts.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace syncline::io {

// 32 hexadecimal digits, as `xxhsum -H2` prints them. Thread-safe.
std::string content_digest(std::span<const std::byte> bytes);

// The same digest over pieces of bytes: callers digest each block of a large array while it is in the processor's cache
// for the disk transfer. Not thread-safe.
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
