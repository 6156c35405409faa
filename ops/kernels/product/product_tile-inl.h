// The innermost loop of matrix products: a tile of C, kTileRows x one or two vectors, is the product of rows of A with
// a panel of B and stays in registers. Highway's foreach_target includes this file once per instruction set.
#if defined(SYNCLINE_PRODUCT_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNCLINE_PRODUCT_TILE_INL_H_
#undef SYNCLINE_PRODUCT_TILE_INL_H_
#else
#define SYNCLINE_PRODUCT_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#include "ops/kernels/product/packed_product.h"

HWY_BEFORE_NAMESPACE();
namespace syncline::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The largest number of rows that the registers hold.
#if HWY_TARGET == HWY_AVX3
constexpr int kTileRows = 8;
#elif HWY_TARGET == HWY_SCALAR
constexpr int kTileRows = 4;
#else
constexpr int kTileRows = 6;
#endif

template <class T>
HWY_INLINE std::int64_t tile_columns() {
  return 2 * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}

// The rows of A that a tile reads. Element p of row r is at[r * row_step + p], or at[p * row_step + r] if the columns
// of A are stored (kColumns).
template <class T>
struct TileRows {
  const T* at;
  std::int64_t row_step;
};

// Stores or adds the first `columns` elements of a vector.
template <class D, class V, class T>
HWY_INLINE void store_part(D d, V sum, T* to, std::int64_t columns, bool add) {
  if (columns >= static_cast<std::int64_t>(hn::Lanes(d)))
    return hn::StoreU(add ? hn::Add(hn::LoadU(d, to), sum) : sum, d, to);
  alignas(64) T all[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(sum, d, all);
  for (std::int64_t c = 0; c < columns; ++c) to[c] = add ? to[c] + all[c] : all[c];
}

// The columns of B that a tile reads: rows of at least two vectors, row_step elements apart.
template <class T>
struct TilePanel {
  const T* at;
  std::int64_t row_step = kPanelColumns<T>;
};

// C = rows * panel, or C += rows * panel, for the first `columns` columns of the tile (at most kVectors vectors).
template <int kRows, bool kColumns, int kVectors, class T>
HWY_ATTR void tile(std::int64_t k, const TileRows<T>& rows, const TilePanel<T>& panel, T* C, std::int64_t ldc,
                   std::int64_t columns, bool add) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T* A = rows.at;
  const std::int64_t step = rows.row_step;
  // The pragmas unroll every loop over rows: g++ keeps an array in registers only if all its indices are constant.
  // Otherwise it stores each accumulator to the stack in every step of k (checked by tests/house/check_tiles.py).
  V first[kRows], second[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    __builtin_prefetch(C + r * ldc, 1);  // loads the rows of C during the product
    if (kVectors > 1) __builtin_prefetch(C + r * ldc + lanes, 1);
    first[r] = second[r] = hn::Zero(d);
  }
  for (std::int64_t p = 0; p < k; ++p) {
    const T* row = panel.at + p * panel.row_step;
    const V b0 = hn::LoadU(d, row), b1 = kVectors > 1 ? hn::LoadU(d, row + lanes) : hn::Zero(d);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const V a = hn::Set(d, kColumns ? A[p * step + r] : A[r * step + p]);
      first[r] = hn::MulAdd(a, b0, first[r]);
      if (kVectors > 1) second[r] = hn::MulAdd(a, b1, second[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    T* to = C + r * ldc;
    store_part(d, first[r], to, columns, add);
    if (kVectors > 1) store_part(d, second[r], to + lanes, columns - lanes, add);
  }
}

// The last tile, with fewer rows.
template <int kRows, bool kColumns, int kVectors, class T>
HWY_INLINE void short_tile(std::int64_t count, std::int64_t k, const TileRows<T>& rows, const TilePanel<T>& panel, T* C,
                           std::int64_t ldc, std::int64_t columns, bool add) {
  if constexpr (kRows > 0) {
    if (count == kRows) return tile<kRows, kColumns, kVectors>(k, rows, panel, C, ldc, columns, add);
    short_tile<kRows - 1, kColumns, kVectors>(count, k, rows, panel, C, ldc, columns, add);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace syncline::kernels
HWY_AFTER_NAMESPACE();

#endif  // SYNCLINE_PRODUCT_TILE_INL_H_
