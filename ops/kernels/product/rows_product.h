// C = A^T B, or C += A^T B, for A (rows, m) and B (rows, n): the gradient of a weight, a sum over the rows of a batch.
//
// A product of many rows is computed in parts, whose sums are added in order. The parts depend only on the sizes, so
// bits do not depend on the number of threads. The caller owns the buffers, which must not overlap. Thread-safe; what
// gemm says of allocation holds. T: float, double.
#pragma once

#include <cstddef>
#include <cstdint>

namespace syncline::kernels {

template <class T>
struct RowsProduct {
  std::int64_t rows, m, n;
  const T *A, *B;
  T* C;
  bool add = false;  // C += product; otherwise C is only written
};

// The bytes of `scratch` for elements of `element_size` bytes.
std::size_t rows_product_scratch(std::int64_t rows, std::int64_t m, std::int64_t n, std::size_t element_size);

template <class T>
void rows_product(const RowsProduct<T>& product, void* scratch);

}  // namespace syncline::kernels
