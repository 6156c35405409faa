// memset and memcpy on several threads.
//
// Thread-safe; allocates nothing; throws nothing. `in` and `out` must not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ops/graph/op.h"
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

inline std::int64_t output_bytes(const KernelArgs& k, int i) {
  return k.out_shape(i).size() * static_cast<std::int64_t>(size_of(k.out_dtype(i)));
}
inline void clear_output(const KernelArgs& k, int i = 0) { clear(k.out[i], output_bytes(k, i)); }
// Unless `from` is output 0, as it may be for an op in place.
inline void copy_to_output(const void* from, const KernelArgs& k) {
  if (from != k.out[0]) copy(from, k.out[0], output_bytes(k, 0));
}

}  // namespace syncline::kernels
