// Matrix products, row-major: C = alpha * op(A) op(B) + beta * C, where op(A) is m x k and op(B) is k x n.
//
// A, B and C are the caller's, and C overlaps neither A nor B. lda, ldb, ldc are the distances between stored rows.
// With beta == 0, C is only written: what it held (NaN too) does not matter. k == 0 scales C by beta. m, n and k may be
// 0. T: float, double (own loops where they are quicker, otherwise a BLAS) and the integer types, which wrap around.
// Thread-safe; allocates nothing but a thread's buffer at its first large product; throws nothing else.
// Where a dimension or distance does not fit an int (BLAS's index), alpha must be 1 and beta 0 or 1.
#pragma once

#include <cstdint>
#include <string>

namespace syncline::kernels {

enum class Trans : bool { kNo = false, kYes = true };

// Split over the pool if large. The split depends on m, n, k only, so bits do not depend on the number of threads.
template <class T>
void gemm(Trans a, Trans b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* A, std::int64_t lda,
          const T* B, std::int64_t ldb, T beta, T* C, std::int64_t ldc);

// The same on the calling thread alone: for kernels that split their own work.
template <class T>
void gemm_serial(Trans a, Trans b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* A,
                 std::int64_t lda, const T* B, std::int64_t ldb, T beta, T* C, std::int64_t ldc);

// What OpenBLAS calls the processor that it chose its kernels for; others sum in another order.
std::string blas_kernels();
// OpenBLAS's version and how it was built, in its own words.
std::string blas_library();

extern template void gemm<float>(Trans, Trans, std::int64_t, std::int64_t, std::int64_t, float, const float*,
                                 std::int64_t, const float*, std::int64_t, float, float*, std::int64_t);
extern template void gemm<double>(Trans, Trans, std::int64_t, std::int64_t, std::int64_t, double, const double*,
                                  std::int64_t, const double*, std::int64_t, double, double*, std::int64_t);
extern template void gemm_serial<float>(Trans, Trans, std::int64_t, std::int64_t, std::int64_t, float, const float*,
                                        std::int64_t, const float*, std::int64_t, float, float*, std::int64_t);
extern template void gemm_serial<double>(Trans, Trans, std::int64_t, std::int64_t, std::int64_t, double, const double*,
                                         std::int64_t, const double*, std::int64_t, double, double*, std::int64_t);

}  // namespace syncline::kernels
