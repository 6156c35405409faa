// SparseArray: a matrix that stores some entries only, in compressed rows (CSR). The type of sparse feeds, sparse
// variables' values, and label sequences.
//
// Canonical: columns rise strictly within a row; duplicates are summed (bool: or); explicit zeros stay entries.
// Immutable. Copies share the bytes.
#pragma once

#include <cstdint>
#include <span>

#include "syncline/array.h"

#pragma GCC visibility push(default)
namespace syncline {

class SparseArray {
 public:
  SparseArray() = default;  // float32 of shape (0, 0)
  // Compressed rows: row r has the entries row_splits[r] to row_splits[r + 1], in any order. Throws ShapeError unless
  // `shape` has two dimensions and the numbers of entries agree, ValueError for descending splits or a column out of
  // range.
  static SparseArray csr(Shape shape, std::span<const std::int64_t> row_splits, std::span<const std::int64_t> columns,
                         const Array& values);
  // Coordinates: entry i is at (rows[i], columns[i]); in any order. Throws as csr does.
  static SparseArray coo(Shape shape, std::span<const std::int64_t> rows, std::span<const std::int64_t> columns,
                         const Array& values);
  // The nonzero entries of a matrix.
  static SparseArray from_dense(const Array& matrix);

  DType dtype() const { return values_.dtype(); }
  const Shape& shape() const { return shape_; }
  std::int64_t rows() const { return shape_[0]; }
  std::int64_t columns() const { return shape_[1]; }
  std::int64_t count() const { return values_.size(); }

  // rows() + 1 elements; row r has the entries [row_splits[r], row_splits[r + 1]).
  std::span<const std::int64_t> row_splits() const { return row_splits_.values<std::int64_t>(); }
  std::span<const std::int64_t> column_indices() const { return column_indices_.values<std::int64_t>(); }
  const Array& values() const { return values_; }  // a vector, one element per entry
  std::int64_t count_in_rows(std::int64_t begin, std::int64_t end) const {
    return row_splits()[static_cast<std::size_t>(end)] - row_splits()[static_cast<std::size_t>(begin)];
  }

  Array to_dense() const;
  SparseArray cast(DType dtype) const;
  // Rows [begin, end).
  SparseArray slice_rows(std::int64_t begin, std::int64_t end) const;

 private:
  Shape shape_{0, 0};
  Array row_splits_{DType::kInt64, Shape{1}};
  Array column_indices_{DType::kInt64, Shape{0}};
  Array values_;
};

}  // namespace syncline
#pragma GCC visibility pop
