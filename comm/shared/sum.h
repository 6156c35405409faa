// The arithmetic of the wire: reductions of several ranks' elements in a given order, and the 16-bit wire formats of
// float32. Results are bit-identical on every instruction set.
//
// Pure functions over the caller's memory. Integers wrap. If an element is NaN, the maximum and the minimum are NaN.
#pragma once

#include <cstdint>
#include <span>

#include "comm/rounds/sum_tree.h"
#include "syncline/distributed/communicator.h"

namespace syncline::comm {

// to[i] = the reduction of from[0][i], from[1][i], ... in this order, which has the terms' indices. `to` may be one of
// `from`.
void reduce_into(DType dtype, Reduce reduce, const SumOrder& order, std::span<const void* const> from, void* to,
                 std::int64_t count);

// Writes the reduction of all buffers to each of them.
void reduce_in_place(DType dtype, Reduce reduce, const SumOrder& order, std::span<void* const> buffers,
                     std::int64_t count);

// Bytes of an element on the wire: 2 for float32 in a 16-bit format.
std::int64_t wire_width(DType dtype, WireFormat format);
// Convert between float32 and a 16-bit format. to_wire rounds to the nearest, ties to even.
void to_wire(WireFormat format, const float* from, std::uint16_t* to, std::int64_t count);
void from_wire(WireFormat format, const std::uint16_t* from, float* to, std::int64_t count);

}  // namespace syncline::comm
