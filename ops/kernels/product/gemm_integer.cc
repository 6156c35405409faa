// Integer matrix products (gemm.h): plain loops, modulo 2^bits.
#include "base/convert.h"
#include "ops/kernels/parallel.h"
#include "ops/kernels/product/gemm.h"

namespace syncline::kernels {
namespace {

template <class T>
T times_plus(T a, T b, T sum) {
  return static_cast<T>(wrapping(sum) + wrapping(static_cast<T>(wrapping(a) * wrapping(b))));
}

// Adds to row i of C. The innermost loop runs along rows of op(B), which are contiguous if B is not transposed.
template <class T>
void add_row(Trans a, Trans b, std::int64_t i, std::int64_t n, std::int64_t k, T alpha, const T* A, std::int64_t lda,
             const T* B, std::int64_t ldb, T* row) {
  for (std::int64_t p = 0; p < k; ++p) {
    const T left = times_plus(alpha, a == Trans::kYes ? A[p * lda + i] : A[i * lda + p], T{0});
    if (b == Trans::kNo)
      for (std::int64_t j = 0; j < n; ++j) row[j] = times_plus(left, B[p * ldb + j], row[j]);
    else
      for (std::int64_t j = 0; j < n; ++j) row[j] = times_plus(left, B[j * ldb + p], row[j]);
  }
}

}  // namespace

template <class T>
void gemm_serial(Trans a, Trans b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* A,
                 std::int64_t lda, const T* B, std::int64_t ldb, T beta, T* C, std::int64_t ldc) {
  for (std::int64_t i = 0; i < m; ++i) {
    T* row = C + i * ldc;
    for (std::int64_t j = 0; j < n; ++j) row[j] = beta == 0 ? T{0} : times_plus(beta, row[j], T{0});
    add_row(a, b, i, n, k, alpha, A, lda, B, ldb, row);
  }
}

template <class T>
void gemm(Trans a, Trans b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* A, std::int64_t lda,
          const T* B, std::int64_t ldb, T beta, T* C, std::int64_t ldc) {
  const double cost = 2 + 0.5 * static_cast<double>(n) * static_cast<double>(k);
  parallel_for(m, cost, [&](std::int64_t begin, std::int64_t end) {
    const T* rows = A + begin * (a == Trans::kYes ? 1 : lda);
    gemm_serial(a, b, end - begin, n, k, alpha, rows, lda, B, ldb, beta, C + begin * ldc, ldc);
  });
}

#define SYNCLINE_INSTANTIATE(T)                                                                                      \
  template void gemm<T>(Trans, Trans, std::int64_t, std::int64_t, std::int64_t, T, const T*, std::int64_t, const T*, \
                        std::int64_t, T, T*, std::int64_t);                                                          \
  template void gemm_serial<T>(Trans, Trans, std::int64_t, std::int64_t, std::int64_t, T, const T*, std::int64_t,    \
                               const T*, std::int64_t, T, T*, std::int64_t);
SYNCLINE_INSTANTIATE(std::uint8_t)
SYNCLINE_INSTANTIATE(std::int8_t)
SYNCLINE_INSTANTIATE(std::int16_t)
SYNCLINE_INSTANTIATE(std::int32_t)
SYNCLINE_INSTANTIATE(std::int64_t)

}  // namespace syncline::kernels
