// Packs the operands of a blocked product in the order in which tiles read them. Highway's foreach_target includes this
// file once per instruction set.
#if defined(SYNCLINE_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNCLINE_PACK_INL_H_
#undef SYNCLINE_PACK_INL_H_
#else
#define SYNCLINE_PACK_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "ops/kernels/copy/transpose_square.h"
#include "ops/kernels/product/blocked_product.h"
#include "ops/kernels/product/product_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syncline::kernels {
namespace HWY_NAMESPACE {
using Index = std::int64_t;

// Packs rows [p0, p0 + depth) of columns [j0, j0 + columns) of op(B), at most one panel.
template <class T>
HWY_ATTR void pack_panel(const MatrixProduct<T>& x, Index p0, Index depth, Index j0, Index columns, T* to) {
  constexpr Index kWidth = kPanelColumns<T>;
  if (columns < kWidth) std::fill_n(to, depth * kWidth, T(0));
  if (x.b == Trans::kYes) {
    const T* from = x.B + j0 * x.ldb + p0;
    Index p = 0;
    if constexpr (sizeof(T) == sizeof(std::uint32_t)) {
      const auto* words = reinterpret_cast<const std::uint32_t*>(from);
      const Index whole = columns / kSquare * kSquare;
      for (; whole > 0 && p + kSquare <= depth; p += kSquare) {
        transpose_squares(words + p, x.ldb, reinterpret_cast<std::uint32_t*>(to + p * kWidth), kWidth, whole / kSquare,
                          false);
        for (Index c = whole; c < columns; ++c)
          for (Index q = p; q < p + kSquare; ++q) to[q * kWidth + c] = from[c * x.ldb + q];
      }
    }
    constexpr Index kRun = 16;  // elements of a row at a time: the written block stays in the first-level cache
    for (; p < depth; p += kRun)
      for (Index c = 0; c < columns; ++c)
        for (Index q = p; q < std::min(p + kRun, depth); ++q) to[q * kWidth + c] = from[c * x.ldb + q];
    return;
  }
  const T* from = x.B + p0 * x.ldb + j0;
  if (columns < kWidth) {
    for (Index p = 0; p < depth; ++p) std::copy_n(from + p * x.ldb, columns, to + p * kWidth);
    return;
  }
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  for (Index p = 0; p < depth; ++p)
    for (Index c = 0; c < kWidth; c += lanes) hn::Store(hn::LoadU(d, from + p * x.ldb + c), d, to + p * kWidth + c);
}

// Copies kTileRows elements by whole vectors, which may read and write up to four more. So another column must follow
// `from` in A, and the copy of that column must follow: it overwrites them. Not for the last column.
template <class T>
HWY_INLINE void copy_tile_column(const T* from, T* to) {
  const hn::CappedTag<T, 8> d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
#pragma GCC unroll 8
  for (Index r = 0; r < kTileRows; r += lanes) hn::StoreU(hn::LoadU(d, from + r), d, to + r);
}

// Packs rows [i0, i0 + rows) of op(A), whose columns are stored: tile by tile, kTileRows elements per column.
template <class T>
HWY_ATTR void pack_rows(const MatrixProduct<T>& x, Index p0, Index depth, Index i0, Index rows, T* to) {
  constexpr Index kRun = 8;  // columns at a time: both sides stay in the first-level cache
  const Index whole = rows / kTileRows * kTileRows;
  const T* from = x.A + p0 * x.lda + i0;
  for (Index first = 0; first < depth; first += kRun) {
    const Index last = std::min(first + kRun, depth);
    for (Index i = 0; i < whole; i += kTileRows)
      for (Index p = first; p < last; ++p) {
        T* tile = to + i * depth + p * kTileRows;
        if (p + 1 < depth) copy_tile_column(from + p * x.lda + i, tile);
        else std::copy_n(from + p * x.lda + i, kTileRows, tile);
      }
    for (Index p = first; p < last; ++p)
      for (Index i = whole; i < rows; ++i) to[whole * depth + p * kTileRows + i - whole] = from[p * x.lda + i];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace syncline::kernels
HWY_AFTER_NAMESPACE();

#endif  // SYNCLINE_PACK_INL_H_
