// Matrix products: C = op(A) op(B), or C += op(A) op(B), row-major, in blocks whose operands stay in the caches. Panels
// of B are packed, unless B is packed already, and A if its columns are stored. With at most two tiles of rows, neither
// A nor a whole panel of B is packed; with at most two panels of columns, A is not packed.
//
// The caller owns the buffers, which must not overlap. The sum of an element runs over blocks of k in order,
// independent of the other rows and columns. Runs on the calling thread. Thread-safe. The first product of a thread
// allocates 2 MiB, which the thread keeps; nothing else throws. T: float, double.
#pragma once

#include <cstdint>
#include <span>

#include "ops/kernels/product/gemm.h"

namespace syncline::kernels {

// True if a product of this shape is faster here than in a BLAS. `wide_blas`: it has vectors of 512 bits.
bool blocked_product_pays(std::int64_t m, std::int64_t n, std::int64_t k, bool wide_blas);
// True if there are vector instructions. Without them a BLAS is faster.
bool has_vectors();
// True if our vectors are 512 bits wide.
bool has_wide_vectors();

template <class T>
struct MatrixProduct {
  Trans a, b;
  std::int64_t m, n, k;
  const T* A;
  std::int64_t lda;
  const T* B;
  std::int64_t ldb;
  T* C;
  std::int64_t ldc;
  bool add;  // C += product; otherwise C is only written
  // Where parts of k begin, then k: the product is the sum of the parts' products along the tree of part_tree.h, each
  // with the bits that it has alone. Empty: one part. See fits_parts.
  std::span<const std::int64_t> parts{};
  RowEpilogue then{};        // of whole rows: ldc == n
  bool b_is_packed = false;  // B has the panels of op(B) with all k rows (packed_product.h); b and ldb are ignored
};

// True if blocked_product supports these parts.
template <class T>
bool fits_parts(std::span<const std::int64_t> parts);

template <class T>
void blocked_product(const MatrixProduct<T>& product);

// Packs the panels [begin, end) of op(B), in the layout of packed_product.h.
template <class T>
void pack_panels(Trans b, std::int64_t k, std::int64_t n, const T* B, std::int64_t ldb, std::int64_t begin,
                 std::int64_t end, T* packed);

}  // namespace syncline::kernels
