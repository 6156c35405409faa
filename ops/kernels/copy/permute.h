// Copies with permuted, repeated or reversed axes.
//
// Thread-safe; allocates nothing; throws nothing. `in` and `out` must not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace syncline::kernels {

// out[i0, i1, ...] = in[i0 * stride[0] + i1 * stride[1] + ...]; `out` is C-ordered with shape `dims` (at most 16 axes).
// Strides count elements and may be 0 (repeats) or negative; `in` points to index 0 of every axis.
void strided_copy(std::span<const std::int64_t> dims, std::span<const std::int64_t> stride, std::size_t element_size,
                  const void* in, void* out);

}  // namespace syncline::kernels
