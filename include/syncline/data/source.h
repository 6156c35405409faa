// Source: rows of a data set on disk, whatever the format: named columns, all of the same number of rows.
//
// What can be read in place is (docs/data.md): then a source holds no more than it is asked for. It is used by one
// thread at a time, any thread. Files must not change while they are open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "syncline/array.h"

namespace syncline::io {

struct Column {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape row;  // of one row: () for a number

  std::size_t row_bytes() const { return static_cast<std::size_t>(row.size()) * size_of(dtype); }
  Shape shape_of(std::int64_t rows) const;
};

// True if an array of this type and shape has a number of bytes.
bool is_possible(DType dtype, const Shape& shape);

class Source {
 public:
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const std::vector<Column>& columns() const { return columns_; }
  std::int64_t rows() const { return rows_; }
  // Of all columns together.
  std::size_t row_bytes() const;

  // Room for so many rows, an array a column, of any values.
  std::vector<Array> make_room(std::int64_t rows) const;
  // Reads `rows`, each of 0 .. rows()-1, in this order, into rows [at, at + rows.size()) of `targets` (make_room). Rows
  // that follow one another are read at once. Throws IoError for what is damaged, ValueError for a row there is not.
  void read(std::span<const std::int64_t> rows, std::span<Array> targets, std::int64_t at = 0);
  // Rows [begin, begin + count), which must be there, into rows [at, at + count) of `targets`.
  virtual void read_run(std::int64_t begin, std::int64_t count, std::span<Array> targets, std::int64_t at) = 0;
  // Rows [begin, end). What is in memory already is shared, not copied.
  virtual std::vector<Array> read_range(std::int64_t begin, std::int64_t end);

 protected:
  // Throws ValueError if two columns have one name, there is none, or the bytes of a row cannot be counted.
  Source(std::vector<Column> columns, std::int64_t rows);
  void check_range(std::int64_t begin, std::int64_t end) const;

 private:
  std::vector<Column> columns_;
  std::int64_t rows_;
};

// The bytes of rows [at, at + count) of an array.
std::span<std::byte> row_span(Array& array, std::int64_t at, std::int64_t count);

struct NamedRows {
  std::string name;
  Array values;
};
// Arrays in memory, shared. Throws ValueError if their numbers of rows differ, or one is a scalar.
std::unique_ptr<Source> array_source(std::vector<NamedRows> columns);

// The columns of several sources, side by side: images in one file, labels in another. Throws ValueError if their
// numbers of rows differ or two columns have one name.
std::unique_ptr<Source> join_sources(std::vector<std::unique_ptr<Source>> sources);

}  // namespace syncline::io
