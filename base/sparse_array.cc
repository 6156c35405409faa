#include "syncline/sparse_array.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace syncline {
namespace {

constexpr std::string_view kName = "sparse array";

void check(const Shape& shape, std::size_t columns, const Array& values) {
  if (shape.ndim() != 2 || !shape.is_known())
    fail<ShapeError>(kName, ": the shape is ", shape, "; it must have two known dimensions");
  if (values.shape().ndim() != 1 || static_cast<std::size_t>(values.size()) != columns)
    fail<ShapeError>(kName, ": there are ", columns, " columns and values of shape ", values.shape(),
                     "; give one value per entry");
}

void check_inside(std::string_view what, std::span<const std::int64_t> numbers, std::int64_t size) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] < 0 || numbers[i] >= size)
      fail<ValueError>(kName, ": ", what, ' ', numbers[i], " of entry ", i, " is outside [0, ", size, ')');
}

void check_splits(std::span<const std::int64_t> splits, std::int64_t rows, std::size_t entries) {
  if (static_cast<std::int64_t>(splits.size()) != rows + 1)
    fail<ShapeError>(kName, ": there are ", splits.size(), " row splits for ", rows,
                     " rows; give one more row split than rows");
  for (std::size_t i = 0; i + 1 < splits.size(); ++i)
    if (splits[i] > splits[i + 1])
      fail<ValueError>(kName, ": row splits decrease from ", splits[i], " to ", splits[i + 1], " at row ", i,
                       "; they must not decrease");
  if (splits.front() != 0 || splits.back() != static_cast<std::int64_t>(entries))
    fail<ValueError>(kName, ": row splits run from ", splits.front(), " to ", splits.back(),
                     "; they must run from 0 to ", entries, ", the number of entries");
}

template <class T>
T sum_of(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) return a || b;
  else if constexpr (std::is_same_v<T, Float16>) return Float16(static_cast<float>(a) + static_cast<float>(b));
  else return static_cast<T>(a + b);
}

template <class T>
bool is_zero(T value) {
  if constexpr (std::is_same_v<T, Float16>) return static_cast<float>(value) == 0;
  else return value == T{};
}

}  // namespace

SparseArray SparseArray::csr(Shape shape, std::span<const std::int64_t> row_splits,
                             std::span<const std::int64_t> columns, const Array& values) {
  check(shape, columns.size(), values);
  check_splits(row_splits, shape[0], columns.size());
  std::vector<std::int64_t> rows;
  rows.reserve(columns.size());
  for (std::size_t r = 0; r + 1 < row_splits.size(); ++r)
    rows.insert(rows.end(), static_cast<std::size_t>(row_splits[r + 1] - row_splits[r]), static_cast<std::int64_t>(r));
  return coo(std::move(shape), rows, columns, values);
}

SparseArray SparseArray::coo(Shape shape, std::span<const std::int64_t> rows, std::span<const std::int64_t> columns,
                             const Array& values) {
  check(shape, columns.size(), values);
  if (rows.size() != columns.size())
    fail<ShapeError>(kName, ": there are ", rows.size(), " row numbers and ", columns.size(),
                     " column numbers; give one of each per entry");
  check_inside("row", rows, shape[0]);
  check_inside("column", columns, shape[1]);
  std::vector<std::size_t> order(columns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // A stable sort keeps the summation order of duplicates.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return rows[a] != rows[b] ? rows[a] < rows[b] : columns[a] < columns[b];
  });
  auto same_place = [&](std::size_t a, std::size_t b) { return rows[a] == rows[b] && columns[a] == columns[b]; };
  std::size_t distinct = 0;
  for (std::size_t i = 0; i < order.size(); ++i) distinct += i == 0 || !same_place(order[i - 1], order[i]);

  SparseArray result;
  result.row_splits_ = Array(DType::kInt64, Shape{shape[0] + 1});
  result.column_indices_ = Array(DType::kInt64, Shape{static_cast<std::int64_t>(distinct)});
  result.values_ = Array(values.dtype(), Shape{static_cast<std::int64_t>(distinct)});
  result.shape_ = std::move(shape);
  auto* splits = result.row_splits_.data<std::int64_t>();
  auto* indices = result.column_indices_.data<std::int64_t>();
  with_stored_dtype(values.dtype(), [&]<class T>(T) {
    const T* from = values.data<T>();
    T* to = result.values_.data<T>();
    std::int64_t last = -1;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0 && same_place(order[i - 1], order[i])) {
        to[last] = sum_of(to[last], from[order[i]]);
        continue;
      }
      to[++last] = from[order[i]];
      indices[last] = columns[order[i]];
      ++splits[rows[order[i]] + 1];
    }
  });
  std::partial_sum(splits, splits + result.row_splits_.size(), splits);
  return result;
}

SparseArray SparseArray::from_dense(const Array& matrix) {
  if (matrix.shape().ndim() != 2)
    fail<ShapeError>(kName, ": the value has the shape ", matrix.shape(), "; it must be a matrix, with two dimensions");
  SparseArray result;
  result.shape_ = matrix.shape();
  const std::int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  with_stored_dtype(matrix.dtype(), [&]<class T>(T) {
    const T* from = matrix.data<T>();
    const auto zeros = std::count_if(from, from + matrix.size(), is_zero<T>);
    result.values_ = Array(matrix.dtype(), Shape{matrix.size() - zeros});
    result.column_indices_ = Array(DType::kInt64, result.values_.shape());
    result.row_splits_ = Array(DType::kInt64, Shape{rows + 1});
    std::int64_t count = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const T value = from[r * columns + c];
        if (is_zero(value)) continue;
        result.values_.data<T>()[count] = value;
        result.column_indices_.data<std::int64_t>()[count++] = c;
      }
      result.row_splits_.data<std::int64_t>()[r + 1] = count;
    }
  });
  return result;
}

Array SparseArray::to_dense() const {
  Array dense(dtype(), shape_);
  with_stored_dtype(dtype(), [&]<class T>(T) {
    const auto* splits = row_splits_.data<std::int64_t>();
    const auto* indices = column_indices_.data<std::int64_t>();
    for (std::int64_t r = 0; r < rows(); ++r)
      for (std::int64_t i = splits[r]; i < splits[r + 1]; ++i)
        dense.data<T>()[r * columns() + indices[i]] = values_.data<T>()[i];
  });
  return dense;
}

SparseArray SparseArray::cast(DType dtype) const {
  SparseArray result = *this;
  result.values_ = values_.cast(dtype);
  return result;
}

SparseArray SparseArray::slice_rows(std::int64_t begin, std::int64_t end) const {
  if (begin < 0 || end < begin || end > rows())
    fail<ShapeError>(kName, ": rows ", begin, " to ", end, " are out of range for shape ", shape_);
  SparseArray result;
  result.shape_ = Shape{end - begin, columns()};
  result.row_splits_ = row_splits_.rows(begin, end + 1).copy();
  auto* splits = result.row_splits_.data<std::int64_t>();
  const std::int64_t first = splits[0], last = splits[end - begin];
  for (std::int64_t r = 0; r <= end - begin; ++r) splits[r] -= first;
  result.column_indices_ = column_indices_.rows(first, last);
  result.values_ = values_.rows(first, last);
  return result;
}

}  // namespace syncline
