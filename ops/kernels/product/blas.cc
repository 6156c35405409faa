#include "ops/kernels/product/blas.h"

#include "ops/kernels/product/blas_memory.h"

// Declared here, and weak, so that the library links and runs without OpenBLAS.
extern "C" {
[[gnu::weak]] void cblas_sgemm(int order, int a, int b, int m, int n, int k, float alpha, const float* A, int lda,
                               const float* B, int ldb, float beta, float* C, int ldc);
[[gnu::weak]] void cblas_dgemm(int order, int a, int b, int m, int n, int k, double alpha, const double* A, int lda,
                               const double* B, int ldb, double beta, double* C, int ldc);
[[gnu::weak]] char* openblas_get_config();
[[gnu::weak]] char* openblas_get_corename();
[[gnu::weak]] int openblas_get_parallel();
[[gnu::weak]] void openblas_set_num_threads(int threads);
}

namespace syncline::kernels {
namespace {

constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;  // CBLAS's constants
constexpr int kSerial = 0, kPthread = 1;                              // values of openblas_get_parallel()

int to_cblas(Trans t) { return t == Trans::kYes ? kTranspose : kNoTranspose; }

Blas refuse(const std::string& library, const char* why) {
  return {.library = library, .processor = "no OpenBLAS", .refused = why};
}

Blas look() {
  if (openblas_get_config == nullptr) return refuse("no OpenBLAS", "it is not there");
  const std::string library = openblas_get_config(), core = openblas_get_corename();
  const int parallel = openblas_get_parallel();
  if (parallel == kSerial) return refuse(library, "this flavour has no locks, so several threads cannot call it");
  if (parallel != kPthread) return refuse(library, "this flavour starts threads of its own (OpenMP) beside the pool");
  openblas_set_num_threads(1);
  Blas blas{.library = library, .processor = "OpenBLAS's kernels for " + core};
  // An OpenBLAS older than the processor selects kernels of an older processor, with half the vector width.
  blas.wide = core == "SkylakeX" || core == "Cooperlake" || core == "Sapphirerapids";
  return blas;
}

void reserve_once() {
  static const bool reserved = [] {
    reserve_blas_memory();
    return true;
  }();
  static_cast<void>(reserved);
}

}  // namespace

const Blas& loaded_blas() {
  static const Blas blas = look();
  return blas;
}

void blas_product(Trans a, Trans b, int m, int n, int k, float alpha, const float* A, int lda, const float* B, int ldb,
                  float beta, float* C, int ldc) {
  reserve_once();
  cblas_sgemm(kRowMajor, to_cblas(a), to_cblas(b), m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}
void blas_product(Trans a, Trans b, int m, int n, int k, double alpha, const double* A, int lda, const double* B,
                  int ldb, double beta, double* C, int ldc) {
  reserve_once();
  cblas_dgemm(kRowMajor, to_cblas(a), to_cblas(b), m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}

}  // namespace syncline::kernels
