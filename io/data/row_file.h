// Rows of a fixed width, one behind the other in a file: what IDX and npy have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/files/byte_file.h"
#include "syncline/data/source.h"

namespace syncline::io {

struct RowFile {
  Column column;
  std::int64_t rows = 0;
  std::unique_ptr<ByteFile> file;
  std::uint64_t begin = 0;  // of the first row
  bool swapped = false;     // the values are big endian
};

// The shape of a row of an array in `path`. Throws IoError if it is a scalar, or no row can have its bytes.
Shape row_shape(const std::string& path, DType dtype, const Shape& shape);

// An array of `shape`. Throws IoError if it is a scalar, or the file does not end with its last row.
RowFile make_row_file(std::string name, DType dtype, const Shape& shape, std::unique_ptr<ByteFile> file,
                      std::uint64_t begin, bool swapped);

// A column a file. Throws IoError if `path`'s columns have different numbers of rows.
std::unique_ptr<Source> row_file_source(const std::string& path, std::vector<RowFile> files);

}  // namespace syncline::io
