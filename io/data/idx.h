// IDX files (the MNIST format): a magic number, big-endian dimensions, big-endian values.
#pragma once

#include <cstddef>
#include <string>

#include "syncline/array.h"

namespace syncline::io {

struct IdxHeader {
  DType dtype = DType::kUint8;
  Shape shape;
  std::size_t bytes = 0;    // size of the header
  bool compressed = false;  // by gzip
};
// Throws IoError as read_idx does. Thread-safe.
IdxHeader read_idx_header(const std::string& path);

// Reads an IDX file, plain or gzipped, of uint8, int8, int16, int32, float32 or float64. Throws IoError, one line with
// file and reason: missing file, truncated or damaged gzip stream, wrong magic number, fewer or more bytes than the
// header promises, dimensions too large for the file. Thread-safe.
Array read_idx(const std::string& path);

}  // namespace syncline::io
