// SparseArray: a matrix of which only some entries are stored, row by row (CSR). What crosses borders as a sparse feed,
// a sparse variable's value, or labels of sequences.
//
// Canonical: the columns of a row rise strictly; entries given several times are summed (bool: or). Zeros that were
// given stay entries. Copying shares the bytes; nothing changes a SparseArray once it is made.
#pragma once

#include <cstdint>
#include <span>

#include "syncline/array.h"

namespace syncline {

class SparseArray {
 public:
  SparseArray() = default;  // float32 of shape (0, 0)
  // Compressed rows: row r has the entries row_splits[r] to row_splits[r + 1], in any order. Throws ShapeError unless
  // `shape` has two dimensions and the numbers of entries agree, ValueError for splits that fall or a column outside.
  static SparseArray csr(Shape shape, std::span<const std::int64_t> row_splits, std::span<const std::int64_t> columns,
                         const Array& values);
  // Coordinates: entry i is at (rows[i], columns[i]); in any order. Throws as csr does.
  static SparseArray coo(Shape shape, std::span<const std::int64_t> rows, std::span<const std::int64_t> columns,
                         const Array& values);
  // The entries of a matrix that are not zero.
  static SparseArray from_dense(const Array& matrix);

  DType dtype() const { return values_.dtype(); }
  const Shape& shape() const { return shape_; }
  std::int64_t rows() const { return shape_[0]; }
  std::int64_t columns() const { return shape_[1]; }
  std::int64_t count() const { return values_.size(); }

  // rows() + 1 of them: row r's entries are [row_splits[r], row_splits[r + 1]).
  std::span<const std::int64_t> row_splits() const { return row_splits_.values<std::int64_t>(); }
  std::span<const std::int64_t> column_indices() const { return column_indices_.values<std::int64_t>(); }
  const Array& values() const { return values_; }  // a vector, one an entry
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
