// Conversion of a sparse value to and from the four tensors that represent it in a graph (ops/sparse/tensor.h).
//
// `borders` cuts the rows into pieces: piece p has the rows [borders[p], borders[p + 1]).
#pragma once

#include <array>
#include <span>

#include "syncline/expr.h"
#include "syncline/sparse_array.h"

namespace syncline {

// Slots per row such that the entries of each piece fit into the slots of its rows. Rounded up to a power of two, so
// that values with similar numbers of entries share a plan.
std::int64_t slots_for(const SparseArray& value, std::span<const std::int64_t> borders);

// Values, columns, spans and extent, in this order.
using PackedSparse = std::array<Array, 4>;
// Reuses the arrays in `packed` whose dtype and shape fit. Throws ShapeError above 2^31 - 1 columns.
void pack(const SparseArray& value, std::int64_t slots, std::span<const std::int64_t> borders, PackedSparse& packed);
// Inverse of pack, for any number of pieces.
SparseArray unpack(const PackedSparse& packed);

// The shapes and dtypes of the packed tensors.
std::array<Meta, 4> packed_metas(DType dtype, const Shape& shape, std::int64_t slots);

}  // namespace syncline
