// Copies elements from strided to strided positions, for slicing, padding and concatenation.
//
// Thread-safe; allocates nothing; throws nothing. `in` and `out` must not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace syncline::kernels {

// out[i0 * out_stride[0] + i1 * out_stride[1] + ...] = in[i0 * in_stride[0] + ...] for all indices below `dims` (at
// most 16 axes). Strides count elements and may be negative. Runs that are contiguous on both sides are copied at once.
void strided_copy(std::span<const std::int64_t> dims, std::span<const std::int64_t> in_stride,
                  std::span<const std::int64_t> out_stride, std::size_t element_size, const void* in, void* out);

}  // namespace syncline::kernels
