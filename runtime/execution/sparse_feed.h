// A sparse value as the four tensors that stand for it in a graph (ops/sparse/tensor.h).
#pragma once

#include <array>
#include <span>

#include "syncline/expr.h"
#include "syncline/sparse_array.h"

namespace syncline {

// The slots of a row for which the entries of each piece of rows fit into the piece's own slots, rounded up to a power
// of two: values with about as many entries have one plan. Piece p has the rows [borders[p], borders[p + 1]).
std::int64_t slots_for(const SparseArray& value, std::span<const std::int64_t> borders);

// Values, columns, spans and extent, in this order. Memory of an earlier value is used again where it fits.
using PackedSparse = std::array<Array, 4>;
void pack(const SparseArray& value, std::int64_t slots, std::span<const std::int64_t> borders, PackedSparse& packed);
// The value again. `packed` may hold several pieces.
SparseArray unpack(const PackedSparse& packed);

// The shapes and dtypes of the packed tensors.
std::array<Meta, 4> packed_metas(DType dtype, const Shape& shape, std::int64_t slots);

}  // namespace syncline
