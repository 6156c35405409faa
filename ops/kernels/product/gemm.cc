#include "ops/kernels/product/gemm.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <limits>

#include "ops/kernels/parallel.h"
#include "ops/kernels/product/blas.h"
#include "ops/kernels/product/blocked_product.h"
#include "syncline/error.h"

namespace syncline::kernels {
namespace {

using Index = std::int64_t;

// Each piece repacks its operands, so pieces are few, long and wide; this costs 1 to 4 % of the time of one core.
// Splitting columns costs less than splitting rows. Powers of two divide evenly among 2, 4 or 8 threads.
constexpr double kFlopsPerPiece = 12e6;
constexpr Index kMaxPieces = 32;
constexpr Index kPieceWidth = 256;
constexpr Index kNarrowPieceWidth = 64;  // for products with long k and short m and n
constexpr Index kPieceAlignment = 32;    // the width of a panel

// At most `most` equal pieces of at least `width`.
Chunks split(Index length, Index most, Index width) {
  const Index pieces = std::min(most, length / width);
  if (pieces < 2) return {length, length, 1};
  const auto even = static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(pieces)));
  const Index size = ((length + even - 1) / even + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
  return {length, size, (length + size - 1) / size};
}

struct Pieces {
  Chunks rows, columns;
};

// Splits the rows of a tall product, otherwise the columns; then the other dimension if that gives too few pieces.
Pieces pieces_of(Index m, Index n, Index k) {
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const auto wanted = static_cast<Index>(std::min(flops / kFlopsPerPiece, static_cast<double>(kMaxPieces)));
  if (wanted < 2) return {{m, m, 1}, {n, n, 1}};
  const auto first = [&](Index length) {
    return split(length, wanted, length >= 2 * kPieceWidth ? kPieceWidth : kNarrowPieceWidth);
  };
  const auto second = [&](Index length, const Chunks& other) {
    return split(length, wanted / std::max<Index>(1, other.count), kPieceWidth);
  };
  if (m > 2 * n) {
    const Chunks rows = first(m);
    return {rows, second(n, rows)};
  }
  const Chunks columns = first(n);
  return {second(m, columns), columns};
}

std::atomic<int> kept_row_bits{0};  // how many live

// Calls body(first row, rows, first column, columns) for each piece, or once.
template <class F>
void for_pieces(const Pieces& pieces, bool all_at_once, F&& body) {
  const Chunks &rows = pieces.rows, &columns = pieces.columns;
  const Index count = rows.count * columns.count;
  if (count == 1 || all_at_once) return body(Index{0}, rows.items, Index{0}, columns.items);
  parallel_chunks(Chunks{count, 1, count}, [&](Index piece, Index, Index) {
    const Index r = piece / columns.count, c = piece % columns.count;
    body(rows.begin(r), rows.end(r) - rows.begin(r), columns.begin(c), columns.end(c) - columns.begin(c));
  });
}

template <class T>
bool is_blocked_product(Index m, Index n, Index k, T alpha, T beta) {
  if (alpha != T(1) || (beta != T(0) && beta != T(1))) return false;
  if (kept_row_bits.load(std::memory_order_relaxed) > 0) return true;
  const Blas& blas = loaded_blas();
  return blocked_product_pays(m, n, k, blas.wide && blas.refused.empty());
}

// Scales C for k == 0: BLAS rejects the leading dimension 0 of an empty operand.
template <class T>
void scale(Index m, Index n, T beta, T* C, Index ldc) {
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) C[i * ldc + j] = beta == T(0) ? T(0) : beta * C[i * ldc + j];
  }
}

// On the calling thread. `blocked`: is_blocked_product of the whole product.
template <class T>
void multiply(bool blocked, Trans a, Trans b, Index m, Index n, Index k, T alpha, const T* A, Index lda, const T* B,
              Index ldb, T beta, T* C, Index ldc, const RowEpilogue& then = {}) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    scale(m, n, beta, C, ldc);
    return then.run(0, m, n);
  }
  const bool without_blas =
      !loaded_blas().refused.empty() || std::max({m, n, k, lda, ldb, ldc}) > std::numeric_limits<int>::max();
  SYNCLINE_CHECK(!without_blas || (alpha == T(1) && (beta == T(0) || beta == T(1))));
  if (without_blas || blocked)
    return blocked_product<T>({a, b, m, n, k, A, lda, B, ldb, C, ldc, beta == T(1), {}, then});
  // OpenBLAS adds the terms of a small product one after the other, which loses digits of long sums.
  constexpr Index kLongestSum = 4096;
  for (Index at = 0; at < k; at += kLongestSum)
    blas_product(a, b, static_cast<int>(m), static_cast<int>(n), static_cast<int>(std::min(kLongestSum, k - at)), alpha,
                 A + at * (a == Trans::kYes ? lda : 1), static_cast<int>(lda), B + at * (b == Trans::kYes ? 1 : ldb),
                 static_cast<int>(ldb), at == 0 ? beta : T(1), C, static_cast<int>(ldc));
  then.run(0, m, n);
}

// A piece of whole rows runs their epilogue. Otherwise the epilogue runs after the product: pieces are columns, or the
// product is one piece, and the epilogue can use more threads.
template <class T>
void multiply_pieces(const Epilogue* epilogue, Trans a, Trans b, Index m, Index n, Index k, T alpha, const T* A,
                     Index lda, const T* B, Index ldb, T beta, T* C, Index ldc) {
  const bool blocked = is_blocked_product(m, n, k, alpha, beta), threads = internal::can_split();
  const Pieces pieces = pieces_of(m, n, k);
  const bool all_at_once = pieces.rows.count * pieces.columns.count == 1 || (blocked && !threads);
  const bool pieces_finish_rows = all_at_once ? !threads : pieces.columns.count == 1;
  // The bits of a blocked product do not depend on its pieces.
  for_pieces(pieces, all_at_once, [&](Index i, Index height, Index j, Index width) {
    multiply(blocked, a, b, height, width, k, alpha, a == Trans::kYes ? A + i : A + i * lda, lda,
             b == Trans::kYes ? B + j * ldb : B + j, ldb, beta, C + i * ldc + j, ldc,
             {pieces_finish_rows ? epilogue : nullptr, i});
  });
  if (!pieces_finish_rows) RowEpilogue{epilogue}.run(0, m, n);
}

}  // namespace

template <class T>
void gemm_serial(Trans a, Trans b, Index m, Index n, Index k, T alpha, const T* A, Index lda, const T* B, Index ldb,
                 T beta, T* C, Index ldc) {
  multiply(is_blocked_product(m, n, k, alpha, beta), a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}

template <class T>
void gemm(Trans a, Trans b, Index m, Index n, Index k, T alpha, const T* A, Index lda, const T* B, Index ldb, T beta,
          T* C, Index ldc) {
  multiply_pieces<T>(nullptr, a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}

template <class T>
void gemm_with_epilogue(const Epilogue* epilogue, Trans a, Trans b, Index m, Index n, Index k, const T* A, Index lda,
                        const T* B, Index ldb, T* C) {
  multiply_pieces<T>(epilogue, a, b, m, n, k, T(1), A, lda, B, ldb, T(0), C, n);
}

template <class T>
void gemm_by_parts(Trans a, Trans b, Index m, Index n, std::span<const Index> parts, const T* A, Index lda, const T* B,
                   Index ldb, T* C, Index ldc) {
  const Index k = parts.back();
  const Pieces pieces = pieces_of(m, n, k);
  for_pieces(pieces, !internal::can_split(), [&](Index i, Index height, Index j, Index width) {
    if (height == 0 || width == 0) return;
    if (k == 0) return scale<T>(height, width, T(0), C + i * ldc + j, ldc);
    blocked_product<T>({a, b, height, width, k, a == Trans::kYes ? A + i : A + i * lda, lda,
                        b == Trans::kYes ? B + j * ldb : B + j, ldb, C + i * ldc + j, ldc, false, parts});
  });
}

template void gemm_by_parts<float>(Trans, Trans, Index, Index, std::span<const Index>, const float*, Index,
                                   const float*, Index, float*, Index);
template void gemm_by_parts<double>(Trans, Trans, Index, Index, std::span<const Index>, const double*, Index,
                                    const double*, Index, double*, Index);

Index gemm_pieces(Index m, Index n, Index k) {
  const auto [rows, columns] = pieces_of(m, n, k);
  return rows.count * columns.count;
}

KeptRowBits::KeptRowBits() { ++kept_row_bits; }
KeptRowBits::~KeptRowBits() { --kept_row_bits; }

template void gemm_with_epilogue<float>(const Epilogue*, Trans, Trans, Index, Index, Index, const float*, Index,
                                        const float*, Index, float*);
template void gemm_with_epilogue<double>(const Epilogue*, Trans, Trans, Index, Index, Index, const double*, Index,
                                         const double*, Index, double*);
template void gemm<float>(Trans, Trans, Index, Index, Index, float, const float*, Index, const float*, Index, float,
                          float*, Index);
template void gemm<double>(Trans, Trans, Index, Index, Index, double, const double*, Index, const double*, Index,
                           double, double*, Index);
template void gemm_serial<float>(Trans, Trans, Index, Index, Index, float, const float*, Index, const float*, Index,
                                 float, float*, Index);
template void gemm_serial<double>(Trans, Trans, Index, Index, Index, double, const double*, Index, const double*, Index,
                                  double, double*, Index);

}  // namespace syncline::kernels
