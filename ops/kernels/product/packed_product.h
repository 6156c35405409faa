// Products with a matrix that is packed once and used often, such as a recurrent weight that every iteration of a loop
// multiplies by its rows, or the kernel of a convolution whose rows come in blocks. Other products repack their operand
// in every call, up to a third of the cost of a product of 48 rows.
//
// C = A B, row-major, where B is k x n. The caller owns the buffers, which must not overlap. Sums have the order of a
// blocked product (blocked_product.h); without vector instructions, that of gemm_serial. Thread-safe. The first product
// of a thread allocates 2 MiB, which the thread keeps; nothing else throws.
#pragma once

#include <cstdint>

#include "ops/kernels/product/gemm.h"

namespace syncline::kernels {

// Packed columns form panels of this many bytes per row; zeros fill the last panel.
inline constexpr std::int64_t kPanelBytes = 128;
template <class T>
inline constexpr std::int64_t kPanelColumns = kPanelBytes / static_cast<std::int64_t>(sizeof(T));

// The panels of n columns, and the bytes of a packed k x n matrix.
template <class T>
constexpr std::int64_t panels_of(std::int64_t n) {
  return (n + kPanelColumns<T> - 1) / kPanelColumns<T>;
}
template <class T>
constexpr std::int64_t packed_bytes(std::int64_t k, std::int64_t n) {
  return panels_of<T>(n) * k * kPanelBytes;
}

// Packs B. `packed`: panels_of(n) panels x k rows x kPanelColumns. ldb: distance of stored rows. Trans::kYes: the
// stored rows are the columns of B.
template <class T>
void pack_matrix(Trans b, std::int64_t k, std::int64_t n, const T* B, std::int64_t ldb, T* packed);

template <class T>
void packed_product(std::int64_t m, std::int64_t n, std::int64_t k, const T* A, const T* packed, T* C);

// On the calling thread. The rows of A and C are lda and ldc elements apart.
template <class T>
void packed_product_serial(std::int64_t m, std::int64_t n, std::int64_t k, const T* A, std::int64_t lda,
                           const T* packed, T* C, std::int64_t ldc);

}  // namespace syncline::kernels
