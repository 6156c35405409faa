#include "ops/kernels/product/rows_product.h"

#include <algorithm>
#include <bit>

#include "ops/kernels/partial_sums.h"
#include "ops/kernels/product/gemm.h"

namespace syncline::kernels {
namespace {

using Index = std::int64_t;

constexpr Index kMostParts = 16;
constexpr Index kPartsBytes = Index{32} << 20;  // of all partial sums
constexpr double kFlopsPerPart = 2e6;
// A part reads its rows of A and B and writes a sum, which is then read. With this many rows the sum costs little.
constexpr Index kFewestRows = 1024, kRowsPerColumn = 8;

// One part if gemm splits the product into as many pieces.
Chunks parts_of(Index rows, Index m, Index n, std::size_t element_size) {
  const Index size = std::max<Index>(1, m * n), fewest = std::max(kFewestRows, kRowsPerColumn * size / (m + n + 1));
  const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(size);
  const auto by_cost = static_cast<Index>(std::min(flops / kFlopsPerPart, static_cast<double>(kMostParts)));
  const Index most = std::min({by_cost, rows / fewest, kPartsBytes / (size * static_cast<Index>(element_size))});
  const Index parts = most < 2 ? 1 : static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(most)));
  if (parts <= gemm_pieces(m, n, rows)) return {rows, rows, 1};
  const Index each = (rows + parts - 1) / parts;
  return {rows, each, (rows + each - 1) / each};
}

}  // namespace

std::size_t rows_product_scratch(Index rows, Index m, Index n, std::size_t element_size) {
  const Index parts = parts_of(rows, m, n, element_size).count;
  return parts < 2 ? 0 : static_cast<std::size_t>(parts * m * n) * element_size;
}

template <class T>
void rows_product(const RowsProduct<T>& p, void* scratch) {
  const Chunks parts = parts_of(p.rows, p.m, p.n, sizeof(T));
  if (parts.count < 2)
    return gemm(Trans::kYes, Trans::kNo, p.m, p.n, p.rows, T(1), p.A, p.m, p.B, p.n, static_cast<T>(p.add ? 1 : 0), p.C,
                p.n);
  T* sums = static_cast<T*>(scratch);
  parallel_chunks(parts, [&](Index part, Index begin, Index end) {
    gemm_serial(Trans::kYes, Trans::kNo, p.m, p.n, end - begin, T(1), p.A + begin * p.m, p.m, p.B + begin * p.n, p.n,
                T(0), sums + part * p.m * p.n, p.n);
  });
  add_partials(sums, parts.count, p.m * p.n, p.C, p.add);
}

template void rows_product<float>(const RowsProduct<float>&, void*);
template void rows_product<double>(const RowsProduct<double>&, void*);

}  // namespace syncline::kernels
