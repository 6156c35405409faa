// Small squares of elements, rows and columns exchanged: what copies with another order of axes are made of.
#pragma once

#include <cstdint>

namespace syncline::kernels {

inline constexpr std::int64_t kSquare = 16;  // elements each way

// out[j * out_stride + i] = in[i * in_stride + j] for i < count * kSquare and j < kSquare. Strides count elements. in
// and out do not overlap. stream: out is too large to be read from a cache soon, so it may go past them. Thread-safe.
void transpose_squares(const std::uint32_t* in, std::int64_t in_stride, std::uint32_t* out, std::int64_t out_stride,
                       std::int64_t count, bool stream);

}  // namespace syncline::kernels
