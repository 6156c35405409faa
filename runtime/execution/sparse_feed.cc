#include "runtime/execution/sparse_feed.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "ops/sparse/tensor.h"

namespace syncline {

std::int64_t slots_for(const SparseArray& value, std::span<const std::int64_t> borders) {
  std::int64_t slots = 1;
  for (std::size_t p = 0; p + 1 < borders.size(); ++p) {
    const std::int64_t rows = borders[p + 1] - borders[p];
    if (rows == 0) continue;
    const std::int64_t entries = value.count_in_rows(borders[p], borders[p + 1]);
    slots = std::max(slots, (entries + rows - 1) / rows);
  }
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(slots)));
}

std::array<Meta, 4> packed_metas(DType dtype, const Shape& shape, std::int64_t slots) {
  return {Meta{dtype, Shape{shape[0], slots}}, Meta{DType::kInt32, Shape{shape[0], slots}},
          Meta{DType::kInt64, Shape{shape[0], 2}}, Meta{DType::kBool, Shape{0, shape[1]}}};
}

void pack(const SparseArray& value, std::int64_t slots, std::span<const std::int64_t> borders, PackedSparse& packed) {
  if (value.columns() > std::numeric_limits<std::int32_t>::max())
    fail<ShapeError>("sparse tensor: the shape ", value.shape(), " has more than 2^31 - 1 columns");
  const auto metas = packed_metas(value.dtype(), value.shape(), slots);
  for (std::size_t i = 0; i < packed.size(); ++i)
    if (packed[i].dtype() != metas[i].dtype || packed[i].shape() != metas[i].shape || packed[i].raw() == nullptr)
      packed[i] = Array(metas[i].dtype, metas[i].shape);
  const std::size_t size = size_of(value.dtype());
  const auto splits = value.row_splits();
  auto* columns = packed[kColumns].data<std::int32_t>();
  auto* spans = packed[kSpans].data<std::int64_t>();
  for (std::size_t p = 0; p + 1 < borders.size(); ++p) {
    const auto first_row = static_cast<std::size_t>(borders[p]), end_row = static_cast<std::size_t>(borders[p + 1]);
    const std::int64_t from = splits[first_row], count = splits[end_row] - from, to = borders[p] * slots;
    for (std::size_t r = first_row; r < end_row; ++r) {
      spans[2 * r] = to + splits[r] - from - static_cast<std::int64_t>(r) * slots;
      spans[2 * r + 1] = splits[r + 1] - splits[r];
    }
    const auto indices =
        value.column_indices().subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(count));
    std::transform(indices.begin(), indices.end(), columns + to, [](auto c) { return static_cast<std::int32_t>(c); });
    if (count > 0)
      std::memcpy(packed[kValues].raw() + static_cast<std::size_t>(to) * size,
                  value.values().raw() + static_cast<std::size_t>(from) * size, static_cast<std::size_t>(count) * size);
  }
}

SparseArray unpack(const PackedSparse& packed) {
  const std::int64_t rows = packed[kSpans].shape()[0], slots = packed[kColumns].shape()[1];
  const auto* spans = packed[kSpans].data<std::int64_t>();
  std::vector<std::int64_t> row_of, column_of, slot_of;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t e = r * slots + spans[2 * r], end = e + spans[2 * r + 1]; e < end; ++e) {
      row_of.push_back(r);
      column_of.push_back(packed[kColumns].data<std::int32_t>()[e]);
      slot_of.push_back(e);
    }
  Array values(packed[kValues].dtype(), Shape{static_cast<std::int64_t>(slot_of.size())});
  with_stored_dtype(values.dtype(), [&]<class T>(T) {
    for (std::size_t i = 0; i < slot_of.size(); ++i) values.data<T>()[i] = packed[kValues].data<T>()[slot_of[i]];
  });
  return SparseArray::coo(Shape{rows, packed[kExtent].shape()[1]}, row_of, column_of, values);
}

}  // namespace syncline
