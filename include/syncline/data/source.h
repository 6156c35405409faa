// Source: rows of a data set on disk, in any format: named columns with equal numbers of rows.
//
// Formats that allow it are read in place (docs/data.md); the source then holds only the requested rows. Any one thread
// at a time may use a source. Files must not change while they are open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "syncline/array.h"

#pragma GCC visibility push(default)
namespace syncline::io {

struct Column {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape row;  // shape of one row: () for a number

  std::size_t row_bytes() const { return static_cast<std::size_t>(row.size()) * size_of(dtype); }
  Shape shape_of(std::int64_t rows) const;
};

// True if the number of bytes of an array of this type and shape is representable.
bool is_possible(DType dtype, const Shape& shape);

class Source {
 public:
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const std::vector<Column>& columns() const { return columns_; }
  std::int64_t rows() const { return rows_; }
  // Bytes of a row over all columns.
  std::size_t row_bytes() const;

  // One uninitialized array per column, each of `rows` rows.
  std::vector<Array> make_room(std::int64_t rows) const;
  // Reads `rows`, each in 0 .. rows()-1, in this order, into rows [at, at + rows.size()) of `targets` (make_room).
  // Reads consecutive rows at once. Throws IoError for damaged data, ValueError for a row out of range.
  void read(std::span<const std::int64_t> rows, std::span<Array> targets, std::int64_t at = 0);
  // Reads rows [begin, begin + count), which must exist, into rows [at, at + count) of `targets`.
  virtual void read_run(std::int64_t begin, std::int64_t count, std::span<Array> targets, std::int64_t at) = 0;
  // Rows [begin, end). Data already in memory is shared, not copied.
  virtual std::vector<Array> read_range(std::int64_t begin, std::int64_t end);

 protected:
  // Throws ValueError if two columns have one name, there are no columns, or the size of a row overflows.
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
// A source over arrays in memory, shared. Throws ValueError if their numbers of rows differ, or one is a scalar.
std::unique_ptr<Source> array_source(std::vector<NamedRows> columns);

// The columns of several sources together: images in one file, labels in another. Throws ValueError if their numbers of
// rows differ or two columns have one name.
std::unique_ptr<Source> join_sources(std::vector<std::unique_ptr<Source>> sources);

}  // namespace syncline::io
#pragma GCC visibility pop
