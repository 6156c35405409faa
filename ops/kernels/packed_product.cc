#include "ops/kernels/packed_product.h"

#include <algorithm>
#include <cstring>

#include "ops/kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/packed_product.cc"
#include <hwy/foreach_target.h>  // includes this file once a target
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace syncline::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Index = std::int64_t;

// A tile of rows x two vectors is kept in registers: as many rows as these allow.
#if HWY_TARGET == HWY_AVX3
constexpr int kTileRows = 8;
#else
constexpr int kTileRows = 4;
#endif

template <class D>
HWY_INLINE Index tile_columns(D d) {
  return 2 * static_cast<Index>(hn::Lanes(d));
}

// Writes `columns` of the tile, at most the two vectors.
template <class D, class V, class T>
HWY_INLINE void store_tile(D d, V first, V second, T* to, Index columns) {
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  if (columns >= 2 * lanes) {
    hn::StoreU(first, d, to);
    hn::StoreU(second, d, to + lanes);
    return;
  }
  alignas(64) T both[2 * HWY_MAX_BYTES / sizeof(T)];
  hn::Store(first, d, both);
  hn::Store(second, d, both + lanes);
  std::memcpy(to, both, static_cast<std::size_t>(columns) * sizeof(T));
}

template <int kRows, class T>
HWY_ATTR void tile(Index n, Index k, const T* A, const T* panel, T* C, Index columns) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  V first[kRows], second[kRows];
  for (int r = 0; r < kRows; ++r) first[r] = second[r] = hn::Zero(d);
  for (Index p = 0; p < k; ++p) {
    const V b0 = hn::LoadU(d, panel + p * kPanelColumns<T>), b1 = hn::LoadU(d, panel + p * kPanelColumns<T> + lanes);
    for (int r = 0; r < kRows; ++r) {
      const V a = hn::Set(d, A[r * k + p]);
      first[r] = hn::MulAdd(a, b0, first[r]);
      second[r] = hn::MulAdd(a, b1, second[r]);
    }
  }
  for (int r = 0; r < kRows; ++r) store_tile(d, first[r], second[r], C + r * n, columns);
}

// The last rows, fewer than a tile has.
template <int kRows, class T>
HWY_INLINE void last_rows(Index rows, Index n, Index k, const T* A, const T* panel, T* C, Index columns) {
  if constexpr (kRows > 0) {
    if (rows == kRows) return tile<kRows>(n, k, A, panel, C, columns);
    last_rows<kRows - 1>(rows, n, k, A, panel, C, columns);
  }
}

template <class T>
HWY_ATTR void panel_product(Index m, Index n, Index k, const T* A, const T* panel, T* C, Index columns) {
  const Index width = tile_columns(hn::ScalableTag<T>());
  for (Index c = 0; c < columns; c += width) {
    Index i = 0;
    for (; i + kTileRows <= m; i += kTileRows) tile<kTileRows>(n, k, A + i * k, panel + c, C + i * n + c, columns - c);
    last_rows<kTileRows - 1>(m - i, n, k, A + i * k, panel + c, C + i * n + c, columns - c);
  }
}

void panel_product_float(Index m, Index n, Index k, const float* A, const float* panel, float* C, Index columns) {
  panel_product(m, n, k, A, panel, C, columns);
}
void panel_product_double(Index m, Index n, Index k, const double* A, const double* panel, double* C, Index columns) {
  panel_product(m, n, k, A, panel, C, columns);
}

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
  const double cost = 0.02 * static_cast<double>(m * k * kWidth);
  parallel_for(panels_of<T>(n), cost, [&](Index begin, Index end) {
    for (Index panel = begin; panel < end; ++panel) {
      const Index first = panel * kWidth;
      panel_product(m, n, k, A, packed + panel * k * kWidth, C + first, std::min(kWidth, n - first));
    }
  });
}

template void pack_matrix<float>(Trans, Index, Index, const float*, Index, float*);
template void pack_matrix<double>(Trans, Index, Index, const double*, Index, double*);
template void packed_product<float>(Index, Index, Index, const float*, const float*, float*);
template void packed_product<double>(Index, Index, Index, const double*, const double*, double*);

}  // namespace syncline::kernels
#endif  // HWY_ONCE
