// Copies with axes in another order.
//
// Thread-safe; allocates nothing; throws nothing. in and out do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace syncline::kernels {

// out[i0, i1, ...] = in[i0 * stride[0] + i1 * stride[1] + ...], out C-ordered with these dimensions (at most 16).
// Strides count elements and may be 0 (repeats) or negative (`in` is then where index 0 of each axis lies).
void strided_copy(std::span<const std::int64_t> dims, std::span<const std::int64_t> stride, std::size_t element_size,
                  const void* in, void* out);

}  // namespace syncline::kernels
