// The innermost loop of matrix products: a tile of C, kTileRows x one or two vectors, is the product of rows of A with
// a panel of B and stays in registers. Highway's foreach_target includes this file once per instruction set.
#if defined(SYNCLINE_PRODUCT_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNCLINE_PRODUCT_TILE_INL_H_
#undef SYNCLINE_PRODUCT_TILE_INL_H_
#else
#define SYNCLINE_PRODUCT_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ops/kernels/product/packed_product.h"

HWY_BEFORE_NAMESPACE();
namespace syncline::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The largest number of rows that the registers hold.
#if HWY_TARGET == HWY_AVX3
constexpr int kTileRows = 12;
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
// of A are stored (kColumns). If the rows are stored, the tile also prefetches the rows `ahead` rows below its own.
template <class T>
struct TileRows {
  const T* at;
  std::int64_t row_step, ahead = 0;
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

// A tile's sums, in registers. The pragmas unroll every loop over sums: g++ keeps an array in registers only if all its
// indices are constant. Otherwise it stores each vector to the stack in every step of k (checked by
// tests/house/check_tiles.py).
template <int kRows, int kVectors, class T>
struct TileSums {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  V first[kRows], second[kRows];

  HWY_INLINE TileSums() {}  // g++ for arm64 compiles an implicit one for another target
  HWY_INLINE void clear() {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) first[r] = second[r] = hn::Zero(D());
  }
  // Adds the products of k columns of the rows with k rows of the panel.
  template <bool kColumns>
  HWY_INLINE void add_products(std::int64_t k, const TileRows<T>& rows, const TilePanel<T>& panel) {
    constexpr std::int64_t kLine = 64 / sizeof(T);
    const bool prefetches = !kColumns && rows.ahead > 0;
    for (std::int64_t begin = 0, end = 0; begin < k; begin = end) {
      end = prefetches ? std::min(begin + kLine, k) : k;
      if (prefetches)
        for (int r = 0; r < kRows; ++r) __builtin_prefetch(rows.at + (r + rows.ahead) * rows.row_step + begin);
      add_products<kColumns>(begin, end, rows, panel);
    }
  }
  template <bool kColumns>
  HWY_INLINE void add_products(std::int64_t begin, std::int64_t end, const TileRows<T>& rows,
                               const TilePanel<T>& panel) {
    const D d;
    const T* A = rows.at;
    const std::int64_t step = rows.row_step;
    for (std::int64_t p = begin; p < end; ++p) {
      const T* row = panel.at + p * panel.row_step;
      const V b0 = hn::LoadU(d, row), b1 = kVectors > 1 ? hn::LoadU(d, row + hn::Lanes(d)) : hn::Zero(d);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const V a = hn::Set(d, kColumns ? A[p * step + r] : A[r * step + p]);
        first[r] = hn::MulAdd(a, b0, first[r]);
        if (kVectors > 1) second[r] = hn::MulAdd(a, b1, second[r]);
      }
    }
  }
  // Adds, or keeps, sums in memory: kRows of two vectors each, aligned.
  HWY_INLINE void add(const T* from) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const T* row = from + r * 2 * static_cast<std::int64_t>(hn::Lanes(D()));
      first[r] = hn::Add(hn::Load(D(), row), first[r]);
      if (kVectors > 1) second[r] = hn::Add(hn::Load(D(), row + hn::Lanes(D())), second[r]);
    }
  }
  HWY_INLINE void keep(T* to) const {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      T* row = to + r * 2 * static_cast<std::int64_t>(hn::Lanes(D()));
      hn::Store(first[r], D(), row);
      if (kVectors > 1) hn::Store(second[r], D(), row + hn::Lanes(D()));
    }
  }
};

// A tile of C, its row stride, and how many columns of it to write (at most kVectors vectors). The tile prefetches
// the rows of C that are `ahead` rows below its own: a short product ends before its own rows would arrive.
template <class T>
struct TileOut {
  T* at;
  std::int64_t row_step, columns;
  bool add;
  std::int64_t ahead = 0;

  template <int kRows, int kVectors>
  HWY_INLINE void prefetch() const {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const T* row = at + (r + ahead) * row_step;
      __builtin_prefetch(row, 1);
      if (kVectors > 1) __builtin_prefetch(row + hn::Lanes(hn::ScalableTag<T>()), 1);
    }
  }
  template <int kRows, int kVectors>
  HWY_INLINE void store(const TileSums<kRows, kVectors, T>& sums) const {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      T* to = at + r * row_step;
      store_part(d, sums.first[r], to, columns, add);
      if (kVectors > 1) store_part(d, sums.second[r], to + lanes, columns - lanes, add);
    }
  }
};

// C = rows * panel, or C += rows * panel. Inline: a call costs as much as a tenth of a tile whose k is 32.
template <int kRows, bool kColumns, int kVectors, class T>
HWY_INLINE void tile(std::int64_t k, const TileRows<T>& rows, const TilePanel<T>& panel, const TileOut<T>& C) {
  TileSums<kRows, kVectors, T> sums;
  C.template prefetch<kRows, kVectors>();
  sums.clear();
  sums.template add_products<kColumns>(k, rows, panel);
  C.store(sums);
}

// Calls f with the number of rows of a tile, `count`, as a constant.
template <int kRows, class F>
HWY_INLINE void with_rows(std::int64_t count, F&& f) {
  if constexpr (kRows > 0) {
    if (count >= kRows) return f(std::integral_constant<int, kRows>());
    with_rows<kRows - 1>(count, f);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace syncline::kernels
HWY_AFTER_NAMESPACE();

#endif  // SYNCLINE_PRODUCT_TILE_INL_H_
