// IDX files, the format of the MNIST family: a magic number, big-endian dimensions, big-endian values.
#pragma once

#include <string>

#include "base/array.h"

namespace syncline::io {

// Reads an IDX file, plain or gzipped. Element types uint8, int8, int16, int32, float32 and float64. Throws IoError,
// one line with the file and the reason: no such file, truncated or damaged gzip stream, wrong magic number, fewer or
// more bytes than the header promises, dimensions that no file of this size can hold. Thread-safe.
Array read_idx(const std::string& path);

}  // namespace syncline::io
