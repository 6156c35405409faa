// Products with a matrix that is packed once and used often, such as a recurrent weight that every iteration of a loop
// multiplies by its rows. A BLAS repacks its operand in every call, up to a fifth of the cost of a product of 32 rows
// and a twentieth of that of 512.
//
// C = A B, row-major, where B is k x n. The caller owns the buffers, which must not overlap. The sum of an element runs
// over k in order, independent of the other rows and columns. Thread-safe; allocates nothing; throws nothing.
#pragma once

#include <cstdint>

#include "ops/kernels/product/gemm.h"

namespace syncline::kernels {

// Packed columns form panels of this many bytes per row; zeros fill the last panel.
inline constexpr std::int64_t kPanelBytes = 128;
template <class T>
inline constexpr std::int64_t kPanelColumns = kPanelBytes / static_cast<std::int64_t>(sizeof(T));

// Packs B. `packed`: ceil(n / kPanelColumns) panels x k rows x kPanelColumns. ldb: distance of stored rows.
// Trans::kYes: the stored rows are the columns of B.
template <class T>
void pack_matrix(Trans b, std::int64_t k, std::int64_t n, const T* B, std::int64_t ldb, T* packed);

template <class T>
void packed_product(std::int64_t m, std::int64_t n, std::int64_t k, const T* A, const T* packed, T* C);

}  // namespace syncline::kernels
