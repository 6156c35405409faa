// Transposes small squares of elements: the building block of axis permutations.
#pragma once

#include <cstdint>

namespace syncline::kernels {

inline constexpr std::int64_t kSquare = 16;  // elements per side

// out[j * out_stride + i] = in[i * in_stride + j] for i < count * kSquare and j < kSquare. Strides count elements. `in`
// and `out` must not overlap. `stream`: stores may bypass the caches, for results too large to be read back soon.
// Thread-safe.
void transpose_squares(const std::uint32_t* in, std::int64_t in_stride, std::uint32_t* out, std::int64_t out_stride,
                       std::int64_t count, bool stream);

}  // namespace syncline::kernels
