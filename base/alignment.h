// The alignment of values in memory, in bytes: a cache line, and the widest vector.
#pragma once

#include <cstddef>

namespace syncline {

inline constexpr std::size_t kAlignment = 64;

// `bytes` rounded up to the alignment.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace syncline
