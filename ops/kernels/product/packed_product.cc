#include "ops/kernels/product/packed_product.h"

#include <algorithm>
#include <cstring>

#include "ops/kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/product/packed_product.cc"
#include <hwy/foreach_target.h>  // includes this file once a target
#include <hwy/highway.h>

#include "ops/kernels/product/product_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syncline::kernels {
namespace HWY_NAMESPACE {
using Index = std::int64_t;

template <class T>
HWY_ATTR void panel_product(Index m, Index n, Index k, const T* A, const T* panel, T* C, Index columns) {
  const Index width = tile_columns<T>();
  for (Index c = 0; c < columns; c += width) {
    for (Index i = 0; i < m; i += kTileRows)
      with_rows<kTileRows>(m - i, [&](auto rows) {
        tile<decltype(rows)::value, false, 2>(k, TileRows<T>{A + i * k, k}, TilePanel<T>{panel + c},
                                              TileOut<T>{C + i * n + c, n, columns - c, false});
      });
  }
}

constexpr auto& panel_product_float = panel_product<float>;
constexpr auto& panel_product_double = panel_product<double>;

}  // namespace HWY_NAMESPACE
}  // namespace syncline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncline::kernels {
namespace {
using Index = std::int64_t;
HWY_EXPORT(panel_product_float);
HWY_EXPORT(panel_product_double);

void panel_product(Index m, Index n, Index k, const float* A, const float* panel, float* C, Index columns) {
  HWY_DYNAMIC_DISPATCH(panel_product_float)(m, n, k, A, panel, C, columns);
}
void panel_product(Index m, Index n, Index k, const double* A, const double* panel, double* C, Index columns) {
  HWY_DYNAMIC_DISPATCH(panel_product_double)(m, n, k, A, panel, C, columns);
}

template <class T>
constexpr Index panels_of(Index n) {
  return (n + kPanelColumns<T> - 1) / kPanelColumns<T>;
}

}  // namespace

template <class T>
void pack_matrix(Trans b, Index k, Index n, const T* B, Index ldb, T* packed) {
  constexpr Index kWidth = kPanelColumns<T>;
  const double cost = 0.5 * static_cast<double>(k * kWidth);
  parallel_for(panels_of<T>(n), cost, [&](Index begin, Index end) {
    for (Index panel = begin; panel < end; ++panel) {
      const Index first = panel * kWidth, columns = std::min(kWidth, n - first);
      T* to = packed + panel * k * kWidth;
      if (columns < kWidth) std::fill_n(to, k * kWidth, T(0));
      if (b == Trans::kNo) {
        for (Index p = 0; p < k; ++p)
          std::memcpy(to + p * kWidth, B + p * ldb + first, static_cast<std::size_t>(columns) * sizeof(T));
      } else {
        for (Index c = 0; c < columns; ++c)
          for (Index p = 0; p < k; ++p) to[p * kWidth + c] = B[(first + c) * ldb + p];
      }
    }
  });
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
    for (Index at = begin; at < end; ++at) {
      const Index row = at / panels * rows, panel = at % panels, first = panel * kWidth;
      panel_product(std::min(rows, m - row), n, k, A + row * k, packed + panel * k * kWidth, C + row * n + first,
                    std::min(kWidth, n - first));
    }
  });
}

template void pack_matrix<float>(Trans, Index, Index, const float*, Index, float*);
template void pack_matrix<double>(Trans, Index, Index, const double*, Index, double*);
template void packed_product<float>(Index, Index, Index, const float*, const float*, float*);
template void packed_product<double>(Index, Index, Index, const double*, const double*, double*);

}  // namespace syncline::kernels
#endif  // HWY_ONCE
