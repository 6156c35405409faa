// Products with a matrix that is packed once and used many times: a recurrent weight, which each turn of a loop
// multiplies by a few rows. A BLAS packs its operand again in every call, which costs as much as a fifth of a product
// of 32 rows.
//
// C = A B, row-major, where B is k x n. Buffers are the caller's and do not overlap. An element's sum runs over k in
// order, whatever the other rows and columns are. Thread-safe; allocates nothing; throws nothing.
#pragma once

#include <cstdint>

#include "ops/kernels/product/gemm.h"

namespace syncline::kernels {

// Packed columns lie in panels of this many bytes a row; the last panel is filled up with zeros.
inline constexpr std::int64_t kPanelBytes = 128;
template <class T>
inline constexpr std::int64_t kPanelColumns = kPanelBytes / static_cast<std::int64_t>(sizeof(T));

// packed: (n / kPanelColumns, rounded up) panels x k rows x kPanelColumns. B's stored rows are ldb apart; b: whether
// these are B's columns.
template <class T>
void pack_matrix(Trans b, std::int64_t k, std::int64_t n, const T* B, std::int64_t ldb, T* packed);

template <class T>
void packed_product(std::int64_t m, std::int64_t n, std::int64_t k, const T* A, const T* packed, T* C);

}  // namespace syncline::kernels
