#include "ops/kernels/product/packed_product.h"

#include <algorithm>

#include "ops/kernels/parallel.h"
#include "ops/kernels/product/blocked_product.h"

namespace syncline::kernels {

using Index = std::int64_t;

template <class T>
void pack_matrix(Trans b, Index k, Index n, const T* B, Index ldb, T* packed) {
  const double cost = 0.5 * static_cast<double>(k * kPanelColumns<T>);
  parallel_for(panels_of<T>(n), cost,
               [&](Index begin, Index end) { pack_panels(b, k, n, B, ldb, begin, end, packed); });
}

template <class T>
void packed_product_serial(Index m, Index n, Index k, const T* A, Index lda, const T* packed, T* C, Index ldc) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (Index i = 0; i < m; ++i) std::fill_n(C + i * ldc, n, T(0));
    return;
  }
  if (!has_vectors()) {  // each panel is a matrix of kPanelColumns columns
    for (Index j = 0; j < n; j += kPanelColumns<T>)
      gemm_serial(Trans::kNo, Trans::kNo, m, std::min(kPanelColumns<T>, n - j), k, T(1), A, lda, packed + j * k,
                  kPanelColumns<T>, T(0), C + j, ldc);
    return;
  }
  MatrixProduct<T> product{Trans::kNo, Trans::kNo, m, n, k, A, lda, packed, 0, C, ldc, false};
  product.b_is_packed = true;
  blocked_product(product);
}

template <class T>
void packed_product(Index m, Index n, Index k, const T* A, const T* packed, T* C) {
  constexpr Index kWidth = kPanelColumns<T>;
  // Rows of A that stay in the second-level cache while all panels are multiplied by them.
  constexpr Index kBlockBytes = Index{256} << 10, kBlockRows = 48;  // a multiple of each target's kTileRows
  const Index row_bytes = std::max<Index>(k, 1) * static_cast<Index>(sizeof(T));
  const Index rows = std::max(kBlockBytes / row_bytes / kBlockRows * kBlockRows, kBlockRows);
  const Index panels = panels_of<T>(n), blocks = (m + rows - 1) / rows;
  const double cost = 0.02 * static_cast<double>(std::min(m, rows) * k * kWidth);
  parallel_for(blocks * panels, cost, [&](Index begin, Index end) {
    for (Index at = begin; at < end;) {
      const Index row = at / panels * rows, panel = at % panels, first = panel * kWidth;
      const Index count = std::min(end - at, panels - panel);  // of panels
      packed_product_serial(std::min(rows, m - row), std::min(count * kWidth, n - first), k, A + row * k, k,
                            packed + panel * k * kWidth, C + row * n + first, n);
      at += count;
    }
  });
}

#define SYNCLINE_INSTANTIATE_PACKED(T)                                          \
  template void pack_matrix<T>(Trans, Index, Index, const T*, Index, T*);       \
  template void packed_product<T>(Index, Index, Index, const T*, const T*, T*); \
  template void packed_product_serial<T>(Index, Index, Index, const T*, Index, const T*, T*, Index);
SYNCLINE_INSTANTIATE_PACKED(float)
SYNCLINE_INSTANTIATE_PACKED(double)
#undef SYNCLINE_INSTANTIATE_PACKED

}  // namespace syncline::kernels
