// Matrix products, row-major: C = alpha * op(A) op(B) + beta * C, where op(A) is m x k and op(B) is k x n.
//
// The caller owns A, B and C; C overlaps neither A nor B. lda, ldb and ldc are the distances between stored rows, in
// elements. With beta == 0, C is only written, so previous content (even NaN) is ignored. k == 0 scales C by beta. m, n
// and k may be 0. T: float, double (own loops if faster, otherwise a BLAS) and the integer types, which wrap around.
// Thread-safe. The first large product of a thread allocates a buffer; nothing else allocates or throws.
// If a dimension or distance exceeds int (the index type of BLAS), or there is no BLAS that may be called, alpha must
// be 1 and beta 0 or 1.
#pragma once

#include <cstdint>
#include <span>

#include "ops/kernels/epilogue.h"

namespace syncline::kernels {

enum class Trans : bool { kNo = false, kYes = true };

// The epilogue, or null, of a matrix of n columns, for a product that computes its rows from `first_row` on.
struct RowEpilogue {
  const Epilogue* epilogue = nullptr;
  std::int64_t first_row = 0;

  // For rows [begin, end) of the product.
  void run(std::int64_t begin, std::int64_t end, std::int64_t n) const {
    if (epilogue != nullptr) epilogue->run((first_row + begin) * n, (first_row + end) * n);
  }
};

// Splits large products over the pool. The split depends only on m, n and k, and is left out on one thread only where
// it decides no bit, so bits do not depend on the number of threads.
template <class T>
void gemm(Trans a, Trans b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* A, std::int64_t lda,
          const T* B, std::int64_t ldb, T beta, T* C, std::int64_t ldc);

// C = op(A) op(B), where ldc is n, then runs the epilogue on C if it is not null. T: float, double.
template <class T>
void gemm_with_epilogue(const Epilogue* epilogue, Trans a, Trans b, std::int64_t m, std::int64_t n, std::int64_t k,
                        const T* A, std::int64_t lda, const T* B, std::int64_t ldb, T* C);

// C = op(A) op(B), where k has parts: parts[i] is the first element of part i, the last one is k. `fits_parts`
// (blocked_product.h) must be true. The products of the parts are added along the tree of part_tree.h. T: float,
// double.
template <class T>
void gemm_by_parts(Trans a, Trans b, std::int64_t m, std::int64_t n, std::span<const std::int64_t> parts, const T* A,
                   std::int64_t lda, const T* B, std::int64_t ldb, T* C, std::int64_t ldc);

// The number of pieces that gemm splits a product into for several threads.
std::int64_t gemm_pieces(std::int64_t m, std::int64_t n, std::int64_t k);

// While one lives, the process calls no BLAS for products with alpha 1 and beta 0 or 1: the bits of a row then depend
// on that row only, not on the number of rows. Some small products are slower. Without one this holds if n is at least
// 8 and k at least 16, unless OpenBLAS and our kernels have vectors of 512 bits.
class KeptRowBits {
 public:
  KeptRowBits();
  ~KeptRowBits();
  KeptRowBits(const KeptRowBits&) = delete;
  KeptRowBits& operator=(const KeptRowBits&) = delete;
};

// Runs on the calling thread only: for kernels that split their own work.
template <class T>
void gemm_serial(Trans a, Trans b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* A,
                 std::int64_t lda, const T* B, std::int64_t ldb, T beta, T* C, std::int64_t ldc);

}  // namespace syncline::kernels
