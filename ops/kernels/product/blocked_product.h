// Large matrix products: C = op(A) op(B), or C += op(A) op(B), row-major, in blocks whose operands stay in the caches.
// B is packed panel by panel, A only where its columns are stored; with a few rows neither is.
//
// Buffers are the caller's and do not overlap. An element's sum runs over blocks of k in order, whatever the other rows
// and columns are. Runs on the calling thread. Thread-safe; a thread's first product allocates 2 MiB, which it keeps;
// throws nothing else. T: float, double.
#pragma once

#include <cstdint>

#include "ops/kernels/product/gemm.h"

namespace syncline::kernels {

// Whether a product of this shape gains by it over a BLAS; `wide_blas`: one whose vectors are as wide as ours.
bool blocked_product_pays(std::int64_t m, std::int64_t n, std::int64_t k, bool wide_blas);
// Whether ours are 512 bits wide.
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
  bool add;  // to what C holds, which is not read otherwise
};

template <class T>
void blocked_product(const MatrixProduct<T>& product);

}  // namespace syncline::kernels
