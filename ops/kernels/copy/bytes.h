// memset and memcpy on several threads.
//
// Thread-safe; allocates nothing; throws nothing. `in` and `out` must not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ops/kernels/parallel.h"

namespace syncline::kernels {

inline constexpr double kNanosecondsPerByte = 0.1;

inline void clear(void* out, std::int64_t bytes) {
  parallel_for(bytes, kNanosecondsPerByte, [&](std::int64_t begin, std::int64_t end) {
    std::memset(static_cast<std::byte*>(out) + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

inline void copy(const void* in, void* out, std::int64_t bytes) {
  parallel_for(bytes, kNanosecondsPerByte, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(static_cast<std::byte*>(out) + begin, static_cast<const std::byte*>(in) + begin,
                static_cast<std::size_t>(end - begin));
  });
}

}  // namespace syncline::kernels
