// The arithmetic of the wire: reductions of several ranks' elements, in the order in which they are given, and the
// 16-bit formats in which float32 may travel. The same bits on every instruction set.
//
// Pure functions over the caller's memory. Integers wrap; max and min of floats are those of `b < a ? a : b`.
#pragma once

#include <cstdint>
#include <span>

#include "syncline/distributed/communicator.h"

namespace syncline::comm {

// to[i] = from[0][i] (+) from[1][i] (+) ... ; `to` may be one of `from`. At least one of them.
void reduce_into(DType dtype, Reduce reduce, std::span<const void* const> from, void* to, std::int64_t count);

// Every buffer gets the reduction of all of them.
void reduce_in_place(DType dtype, Reduce reduce, std::span<void* const> buffers, std::int64_t count);

// Of `dtype` on the wire: 2 for float32 in a 16-bit format.
std::int64_t wire_width(DType dtype, WireFormat format);
// Between float32 and a 16-bit format; rounds to the nearest, ties to even.
void to_wire(WireFormat format, const float* from, std::uint16_t* to, std::int64_t count);
void from_wire(WireFormat format, const std::uint16_t* from, float* to, std::int64_t count);

}  // namespace syncline::comm
