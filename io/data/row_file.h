// RowFile: an array in a file as consecutive rows of fixed width, as in IDX and npy files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/files/random_access_file.h"
#include "syncline/data/source.h"

namespace syncline::io {

struct RowFile {
  Column column;
  std::int64_t rows = 0;
  std::unique_ptr<RandomAccessFile> file;
  std::uint64_t begin = 0;  // byte offset of the first row
  bool swapped = false;     // the values are big-endian
};

// The shape of one row of an array in `path`. Throws IoError if the array is a scalar or its shape is impossible.
Shape row_shape(const std::string& path, DType dtype, const Shape& shape);

// An array of `shape` from byte `begin` on. Throws IoError as row_shape does, or if the file does not end with its
// last row.
RowFile make_row_file(std::string name, DType dtype, const Shape& shape, std::unique_ptr<RandomAccessFile> file,
                      std::uint64_t begin, bool swapped);

// A source with one column per RowFile. Throws IoError naming `path` if their row counts differ.
std::unique_ptr<Source> row_file_source(const std::string& path, std::vector<RowFile> files);

}  // namespace syncline::io
