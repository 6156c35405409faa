#include "ops/kernels/product/blocked_product.h"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

#include "ops/kernels/part_tree.h"
#include "syncline/array.h"

#ifndef SYNCLINE_BLOCKED_PRODUCT_LIMITS  // once, not for each instruction set
#define SYNCLINE_BLOCKED_PRODUCT_LIMITS
namespace syncline::kernels {

// Rows of a block of B: one panel and the tiles of A fit in the second-level cache together.
template <class T>
constexpr std::int64_t kBlockDepth = 1536 / std::int64_t{sizeof(T)};
// Of a product by parts, whose blocks have all rows of B. With more rows, a block has so few rows of A that packing
// them costs more than the sums of parts in memory.
constexpr std::int64_t kMostDepthOfParts = 1024, kMostParts = 1024, kMostSumsKept = sums_kept(kMostParts);

}  // namespace syncline::kernels
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/product/blocked_product.cc"
#include <hwy/foreach_target.h>  // includes this file once a target
#include <hwy/highway.h>

#include "ops/kernels/product/pack-inl.h"
#include "ops/kernels/product/product_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syncline::kernels {
namespace HWY_NAMESPACE {
using Index = std::int64_t;

constexpr Index kBlockRows = 288, kRowsMultiple = 24;  // of A: whole tiles on every instruction set
constexpr Index kPanelsBytes = Index{3} << 19, kScratchBytes = Index{2} << 20;
constexpr Index kSumsBytes = Index{24} << 10;      // of a few rows: they stay in the first-level cache
constexpr Index kLargeBytes = Index{16} << 20;     // of a matrix that no cache keeps
constexpr Index kPackedBytes = kBlockRows * 1536;  // of rows of A
constexpr Index kShortBytes = Index{8} << 10;      // a B of so many bytes stays in the first-level cache beside C
constexpr Index kStepsAhead = 96;                  // steps of k that tiles take while a cache line arrives
constexpr Index kMostTilesAhead = 6;               // the most tiles ahead of which C is prefetched
constexpr Index kMostRowsOfParts = 4;              // by parts, rows that fill no whole tile form tiles of 4, 2 or 1
static_assert(kRowsMultiple % kTileRows == 0);
static_assert(kPanelsBytes + kPackedBytes <= kScratchBytes);
static_assert(kRowsMultiple * kMostDepthOfParts * Index{sizeof(double)} <= kPackedBytes);
static_assert(kPanelBytes * kMostDepthOfParts <= kPanelsBytes);

// The size of a part if `length` is divided evenly into the fewest parts of at most `most`.
HWY_INLINE Index even_part(Index length, Index most, Index multiple) {
  const Index parts = (length + most - 1) / most;
  return ((length + parts - 1) / parts + multiple - 1) / multiple * multiple;
}

// The next part of B to pack, if the rows of B are stored. It is prefetched between the products. A packed B needs no
// prefetch here: processors prefetch its panels by themselves.
template <class T>
struct NextPanel {
  const T* at;
  Index ldb, depth;

  HWY_INLINE void fetch(Index first, Index last) const {
    for (Index p = first; p < last; ++p) {
      __builtin_prefetch(at + p * ldb);
      __builtin_prefetch(at + p * ldb + kPanelColumns<T> / 2);
    }
  }
};

// Rows of A, as they lie or packed: tiles of kTileRows rows, one behind the other.
template <class T>
struct BlockRows {
  TileRows<T> tile;  // the first
  Index distance;    // elements from a row to the next; if packed, from a tile to the next, divided by kTileRows
  bool is_packed = false;

  const T* row(Index i) const {
    return tile.at + (is_packed ? i / kTileRows * kTileRows * distance + i % kTileRows : i * distance);
  }
  // Returns the number of rows of the tile at row i. `left`: the rows from i to the block's end. If A is not packed and
  // k has no parts, the last two tiles share their rows evenly.
  Index tile_rows(Index i, Index left, bool by_parts) const {
    if (is_packed) left = std::min<Index>(left, kTileRows - i % kTileRows);
    if (by_parts && left < kTileRows)
      return static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(std::min(left, kMostRowsOfParts))));
    if (by_parts || left <= kTileRows || left >= 2 * kTileRows) return std::min<Index>(left, kTileRows);
    return (left + 1) / 2;
  }
};

// Sums that a tile keeps in memory.
template <int kRows, class T>
using KeptSums = T[kRows * 2 * HWY_MAX_BYTES / sizeof(T)];

template <bool kColumns, int kRows, int kVectors, class T>
HWY_INLINE void sum_part(Index first, Index end, const TileRows<T>& A, const TilePanel<T>& panel,
                         TileSums<kRows, kVectors, T>& sums) {
  sums.clear();
  sums.template add_products<kColumns>(end - first,
                                       TileRows<T>{A.at + first * (kColumns ? A.row_step : 1), A.row_step, A.ahead},
                                       TilePanel<T>{panel.at + first * panel.row_step, panel.row_step});
}

// A tile whose sums are those of any number of parts of k, added along the tree in registers.
template <int kRows, bool kColumns, int kVectors, class T>
HWY_ATTR void tile_by_parts(std::span<const Index> parts, const TileRows<T>& A, const TilePanel<T>& panel,
                            const TileOut<T>& C) {
  alignas(64) KeptSums<kRows, T> kept[kMostSumsKept];
  TileSums<kRows, kVectors, T> sums;
  sums.clear();  // g++ does not know that there are parts
  C.template prefetch<kRows, kVectors>();
  Index place = 0;
  for (std::size_t p = 0; p + 1 < parts.size(); ++p) {
    sum_part<kColumns>(parts[p], parts[p + 1], A, panel, sums);
    for (int sum = sums_after(static_cast<Index>(p)); sum > 0; --sum) sums.add(kept[--place]);
    if (p + 2 == parts.size()) break;
    sums.keep(kept[place++]);
  }
  C.store(sums);
}

template <int kParts, bool kColumns, int kRows, int kVectors, class T>
HWY_INLINE void sum_parts(const Index* parts, const TileRows<T>& A, const TilePanel<T>& panel,
                          TileSums<kRows, kVectors, T>& sums, KeptSums<kRows, T>* kept) {
  if constexpr (kParts == 1) {
    sum_part<kColumns>(parts[0], parts[1], A, panel, sums);
  } else {
    sum_parts<kParts / 2, kColumns>(parts, A, panel, sums, kept + 1);
    sums.keep(kept[0]);
    sum_parts<kParts / 2, kColumns>(parts + kParts / 2, A, panel, sums, kept + 1);
    sums.add(kept[0]);
  }
}

// The same for kParts parts and a whole tile, without a loop over the parts: the processor does not predict the
// branches of such a loop. 8 parts of 16 rows take a tenth less time.
template <int kParts, bool kColumns, class T>
HWY_ATTR void whole_tile_by_parts(const Index* parts, const TileRows<T>& A, const TilePanel<T>& panel,
                                  const TileOut<T>& C) {
  alignas(64) KeptSums<kTileRows, T> kept[sums_kept(kParts)];
  TileSums<kTileRows, 2, T> sums;
  C.template prefetch<kTileRows, 2>();
  sum_parts<kParts, kColumns>(parts, A, panel, sums, kept);
  C.store(sums);
}

// Multiplies rows of A by a panel, tile by tile, and prefetches the next panel.
template <bool kColumns, class T>
HWY_ATTR void panel_times_rows(const BlockRows<T>& A, Index rows, Index depth, std::span<const Index> parts,
                               const TilePanel<T>& panel, T* C, Index ldc, Index columns, bool add, bool first,
                               const NextPanel<T>& next) {
  const Index width = tile_columns<T>(), ahead = std::min(kMostTilesAhead, kStepsAhead / depth) * kTileRows;
  const Index rows_ahead = first ? std::max<Index>(ahead, kTileRows) : 0;
  for (Index i = 0, count = 0; i < rows; i += count) {
    count = A.tile_rows(i, rows - i, !parts.empty());
    next.fetch(next.depth * i / rows, next.depth * (i + count) / rows);
    const TileRows<T> at{A.row(i), A.tile.row_step, rows_ahead};
    const auto times = [&](auto vectors, Index c) {
      constexpr int kVectors = decltype(vectors)::value;
      const TilePanel<T> part{panel.at + c, panel.row_step};
      const TileOut<T> to{C + i * ldc + c, ldc, columns - c, add, ahead};
      with_rows<kTileRows>(count, [&](auto tile_rows) {
        constexpr int kRows = decltype(tile_rows)::value;
        constexpr bool kWhole = kRows == kTileRows && kVectors == 2;
        if (parts.empty()) return tile<kRows, kColumns, kVectors>(depth, at, part, to);
        if (kWhole && parts.size() == 3) return whole_tile_by_parts<2, kColumns>(parts.data(), at, part, to);
        if (kWhole && parts.size() == 5) return whole_tile_by_parts<4, kColumns>(parts.data(), at, part, to);
        if (kWhole && parts.size() == 9) return whole_tile_by_parts<8, kColumns>(parts.data(), at, part, to);
        if constexpr (kRows == kTileRows || (kRows <= kMostRowsOfParts && std::has_single_bit(unsigned{kRows})))
          tile_by_parts<kRows, kColumns, kVectors>(parts, at, part, to);
      });
    };
    Index c = 0;
    for (; c + width / 2 < columns; c += width) times(std::integral_constant<int, 2>(), c);
    if (c < columns) times(std::integral_constant<int, 1>(), c);
  }
}

// Multiplies all rows of A by one block of B. Unless B is packed, the first block of rows packs the panels; they are
// kept if more rows follow. Packing does not pay for at most two tiles of rows, nor of A for at most two panels of
// columns: the tiles read the operand in place.
template <class T>
HWY_ATTR void block_product(const MatrixProduct<T>& x, Index p0, Index depth, Index j0, Index width, T* panels,
                            T* packed) {
  constexpr Index kWidth = kPanelColumns<T>;
  const bool add = x.add || p0 > 0;
  const Index fitting = kPackedBytes / (depth * static_cast<Index>(sizeof(T))) / kRowsMultiple * kRowsMultiple;
  const Index rows_at_a_time = kEpilogueElements / x.n / kRowsMultiple * kRowsMultiple;
  Index most = std::min(kBlockRows, fitting), first_unfinished = 0;
  if (x.then.epilogue != nullptr && depth * x.n <= kEpilogueElements)  // B stays in the cache beside C
    most = std::min(most, std::max(rows_at_a_time, 2 * kRowsMultiple));
  // C in memory order: its lines come faster.
  const bool is_short = depth * x.n * static_cast<Index>(sizeof(T)) <= kShortBytes && x.n > kWidth;
  if (is_short && x.a == Trans::kNo) most = std::min(most, kRowsMultiple);
  const Index block = even_part(x.m, most, kRowsMultiple);
  const bool keep = block < x.m, few = x.m <= 2 * kTileRows, narrow = x.n <= 2 * kWidth;
  for (Index i0 = 0; i0 < x.m; i0 += block) {
    const Index rows = std::min(block, x.m - i0);
    BlockRows<T> A{{x.A + i0 * x.lda + p0, x.lda}, x.lda};
    if (x.a == Trans::kYes && (few || narrow)) A = {{x.A + p0 * x.lda + i0, x.lda}, 1};
    else if (x.a == Trans::kYes) {
      pack_rows(x, p0, depth, i0, rows, packed);
      A = {{packed, kTileRows}, depth, true};
    }
    for (Index c = 0; c < width; c += kWidth) {
      const Index columns = std::min(kWidth, width - c);
      T *room = panels + (keep ? c * depth : 0), *C = x.C + i0 * x.ldc + j0 + c;
      TilePanel<T> panel{room};
      if (x.b_is_packed) panel = {x.B + (j0 + c) * x.k + p0 * kWidth};
      else if (few && x.b == Trans::kNo && columns == kWidth) panel = {x.B + p0 * x.ldb + j0 + c, x.ldb};
      else if (i0 == 0) pack_panel(x, p0, depth, j0 + c, columns, room);
      const bool last = c + kWidth >= width;
      NextPanel<T> next{x.B + (last ? p0 + depth : p0) * x.ldb + (last ? j0 : j0 + c + kWidth), x.ldb, depth};
      if (i0 > 0 || x.b == Trans::kYes || x.b_is_packed) next.depth = 0;
      if (last) next.depth = std::min(next.depth, x.k - p0 - depth);
      if (x.a == Trans::kYes)
        panel_times_rows<true>(A, rows, depth, x.parts, panel, C, x.ldc, columns, add, c == 0, next);
      else panel_times_rows<false>(A, rows, depth, x.parts, panel, C, x.ldc, columns, add, c == 0, next);
    }
    const Index end = i0 + rows;
    const bool last_block = p0 + depth >= x.k && j0 + width >= x.n;
    if (!last_block || (end < x.m && end - first_unfinished < rows_at_a_time)) continue;
    x.then.run(std::exchange(first_unfinished, end), end, x.n);
  }
}

// Adds kCount rows of B, each times an element of every row of A, to the sums of columns [c, width), as long as whole
// vectors remain. Returns the first column that remains.
template <int kCount, class D, class T>
HWY_ATTR Index add_rows_of_b(D d, const MatrixProduct<T>& x, Index p, Index j0, Index c, Index width, T* sums) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  const Index a_row = x.a == Trans::kYes ? 1 : x.lda, a_step = x.a == Trans::kYes ? x.lda : 1;
  const T *A = x.A + p * a_step, *B = x.B + p * x.ldb + j0;
  for (; c + lanes <= width; c += lanes) {
    V b[kCount];
#pragma GCC unroll 8
    for (int q = 0; q < kCount; ++q) b[q] = hn::LoadU(d, B + q * x.ldb + c);
    for (Index r = 0; r < x.m; ++r) {
      V sum = hn::LoadU(d, sums + r * width + c);
#pragma GCC unroll 8
      for (int q = 0; q < kCount; ++q) sum = hn::MulAdd(hn::Set(d, A[r * a_row + q * a_step]), b[q], sum);
      hn::StoreU(sum, d, sums + r * width + c);
    }
  }
  return c;
}

template <int kCount, class T>
HWY_ATTR void add_rows_of_b(const MatrixProduct<T>& x, Index p, Index j0, Index width, T* sums) {
  Index c = add_rows_of_b<kCount>(hn::ScalableTag<T>(), x, p, j0, 0, width, sums);
  c = add_rows_of_b<kCount>(hn::CappedTag<T, 16 / sizeof(T)>(), x, p, j0, c, width, sums);
  add_rows_of_b<kCount>(hn::CappedTag<T, 1>(), x, p, j0, c, width, sums);
}

// Multiplies a few rows by B, which it reads along its stored rows: the limit is the speed of memory. A sum takes its
// terms in the order of the tiles.
template <class T>
HWY_ATTR void few_rows_product(const MatrixProduct<T>& x, T* sums) {
  constexpr Index kRowsAtOnce = 4;
  const Index depth = even_part(x.k, kBlockDepth<T>, 1);
  const Index most = kSumsBytes / (x.m * static_cast<Index>(sizeof(T))) / kPanelColumns<T> * kPanelColumns<T>;
  for (Index j0 = 0; j0 < x.n; j0 += most) {
    const Index width = std::min(most, x.n - j0);
    for (Index p0 = 0; p0 < x.k; p0 += depth) {
      const Index end = std::min(p0 + depth, x.k);
      const bool add = x.add || p0 > 0;
      std::fill_n(sums, x.m * width, T(0));
      Index p = p0;
      for (; p + kRowsAtOnce <= end; p += kRowsAtOnce) add_rows_of_b<kRowsAtOnce>(x, p, j0, width, sums);
      for (; p < end; ++p) add_rows_of_b<1>(x, p, j0, width, sums);
      for (Index r = 0; r < x.m; ++r) {
        T* to = x.C + r * x.ldc + j0;
        for (Index c = 0; c < width; ++c) to[c] = add ? to[c] + sums[r * width + c] : sums[r * width + c];
      }
    }
  }
}

// The tiles' sums are in registers, but tiles read B in strips of a panel's width. That is slower for one or two rows,
// for a few more where B is narrow, and where B is larger than the caches.
template <class T>
bool reads_along_rows(const MatrixProduct<T>& x) {
  const bool large = x.n * x.k > kLargeBytes / static_cast<Index>(sizeof(T));
  const bool narrow = x.n < kPanelColumns<T>;  // a panel would be packed with zeros
  return !x.b_is_packed && x.b == Trans::kNo && x.m <= (large ? 12 : narrow ? 4 : 2);
}

template <class T>
HWY_ATTR void all_blocks(const MatrixProduct<T>& x, std::byte* memory) {
  constexpr Index kWidth = kPanelColumns<T>;
  T* panels = reinterpret_cast<T*>(memory);
  T* packed = reinterpret_cast<T*>(memory + kPanelsBytes);
  if (x.parts.empty() && reads_along_rows(x)) {
    few_rows_product(x, panels);
    return x.then.run(0, x.m, x.n);
  }
  const Index depth = x.parts.empty() ? even_part(x.k, kBlockDepth<T>, 1) : x.k;
  const Index width = even_part(x.n, kPanelsBytes / kPanelBytes / depth * kWidth, kWidth);
  for (Index j0 = 0; j0 < x.n; j0 += width)
    for (Index p0 = 0; p0 < x.k; p0 += depth)
      block_product(x, p0, std::min(depth, x.k - p0), j0, std::min(width, x.n - j0), panels, packed);
}

template <class T>
HWY_ATTR void pack_all(const MatrixProduct<T>& x, Index begin, Index end, T* packed) {
  constexpr Index kWidth = kPanelColumns<T>;
  for (Index j = begin * kWidth; j < std::min(end * kWidth, x.n); j += kWidth)
    pack_panel(x, 0, x.k, j, std::min(kWidth, x.n - j), packed + j * x.k);
}

void product_float(const MatrixProduct<float>& x, std::byte* memory) { all_blocks(x, memory); }
void product_double(const MatrixProduct<double>& x, std::byte* memory) { all_blocks(x, memory); }
void pack_float(const MatrixProduct<float>& x, Index begin, Index end, float* to) { pack_all(x, begin, end, to); }
void pack_double(const MatrixProduct<double>& x, Index begin, Index end, double* to) { pack_all(x, begin, end, to); }

Index vector_bytes() {
  return HWY_TARGET == HWY_SCALAR ? 0 : static_cast<Index>(hn::Lanes(hn::ScalableTag<std::uint8_t>()));
}

}  // namespace HWY_NAMESPACE
}  // namespace syncline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncline::kernels {
namespace {
HWY_EXPORT(product_float);
HWY_EXPORT(product_double);
HWY_EXPORT(pack_float);
HWY_EXPORT(pack_double);
HWY_EXPORT(vector_bytes);

}  // namespace

// The limit of instruction sets may change, so the dispatch decides. Not hwy::SupportedTargets(): it rereads the CPU
// features on each call, which takes 20 us in a virtual machine, and every small product would make that call.
bool has_vectors() { return HWY_DYNAMIC_DISPATCH(vector_bytes)() > 0; }
bool has_wide_vectors() { return HWY_DYNAMIC_DISPATCH(vector_bytes)() == 64; }

bool blocked_product_pays(std::int64_t m, std::int64_t n, std::int64_t k, bool wide_blas) {
  if (!has_vectors()) return false;
  // For smaller products, a BLAS with vectors of 512 bits is as fast as ours with such vectors, or faster: it has
  // kernels without packing. Otherwise the choice does not depend on the number of rows.
  constexpr std::int64_t kSmall = 1'000'000;
  const bool both_are_wide = wide_blas && has_wide_vectors();
  return n >= 8 && k >= 16 && (!both_are_wide || m * n * k > kSmall);
}

template <class T>
bool fits_parts(std::span<const std::int64_t> parts) {
  if (parts.size() < 3 || parts.size() > kMostParts + 1 || parts.back() > kMostDepthOfParts) return false;
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (parts[i] - parts[i - 1] > kBlockDepth<T>) return false;  // a part alone would be several blocks
  return true;
}

template bool fits_parts<float>(std::span<const std::int64_t>);
template bool fits_parts<double>(std::span<const std::int64_t>);

template <class T>
void blocked_product(const MatrixProduct<T>& product) {
  thread_local Array memory(DType::kUint8, Shape{std::int64_t{2} << 20});
  if constexpr (sizeof(T) == sizeof(float)) HWY_DYNAMIC_DISPATCH(product_float)(product, memory.raw());
  else HWY_DYNAMIC_DISPATCH(product_double)(product, memory.raw());
}

template <class T>
void pack_panels(Trans b, std::int64_t k, std::int64_t n, const T* B, std::int64_t ldb, std::int64_t begin,
                 std::int64_t end, T* packed) {
  const MatrixProduct<T> x{Trans::kNo, b, 0, n, k, nullptr, 0, B, ldb, nullptr, 0, false};
  if constexpr (sizeof(T) == sizeof(float)) HWY_DYNAMIC_DISPATCH(pack_float)(x, begin, end, packed);
  else HWY_DYNAMIC_DISPATCH(pack_double)(x, begin, end, packed);
}

#define SYNCLINE_INSTANTIATE_PRODUCT(T)                                                                               \
  template void blocked_product<T>(const MatrixProduct<T>&);                                                          \
  template void pack_panels<T>(Trans, std::int64_t, std::int64_t, const T*, std::int64_t, std::int64_t, std::int64_t, \
                               T*);
SYNCLINE_INSTANTIATE_PRODUCT(float)
SYNCLINE_INSTANTIATE_PRODUCT(double)
#undef SYNCLINE_INSTANTIATE_PRODUCT

}  // namespace syncline::kernels
#endif  // HWY_ONCE
