// OpenBLAS on one thread, for the products that it computes faster than our kernels.
//
// Its pthread flavour is called. Its OpenMP flavour starts threads of its own for each calling thread, its serial
// flavour has no locks: they are refused, and our kernels compute all products, as in a program that has no OpenBLAS.
// LD_LIBRARY_PATH or Debian's alternatives decide about the flavour when the program starts. Thread-safe.
#pragma once

#include <string>

#include "ops/kernels/product/gemm.h"

namespace syncline::kernels {

struct Blas {
  std::string library{};    // "OpenBLAS 0.3.21 DYNAMIC_ARCH ...": with its version; or "no OpenBLAS"
  std::string processor{};  // "OpenBLAS's kernels for Zen": what decides bits, beside the version; or "no OpenBLAS"
  std::string refused{};    // why products do not call it; "": they do
  bool wide = false;        // its vectors have 512 bits
};

// Looks at the library on the first call.
const Blas& loaded_blas();

// C = alpha op(A) op(B) + beta C, row-major, if OpenBLAS is not refused. The first call throws Error if OpenBLAS lacks
// memory (blas_memory.h).
void blas_product(Trans a, Trans b, int m, int n, int k, float alpha, const float* A, int lda, const float* B, int ldb,
                  float beta, float* C, int ldc);
void blas_product(Trans a, Trans b, int m, int n, int k, double alpha, const double* A, int lda, const double* B,
                  int ldb, double beta, double* C, int ldc);

}  // namespace syncline::kernels
