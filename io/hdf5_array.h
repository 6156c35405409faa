// Arrays as HDF5 datasets: contiguous, little endian, with a CRC-32 of their bytes as the attribute `crc32`.
//
// HDF5 checks its metadata but reads a flipped bit of a contiguous dataset without a word; the attribute closes that
// gap at 4 GB/s. Needs a live Hdf5Session (io/hdf5_handle.h).
#pragma once

#include <string_view>

#include "base/array.h"
#include "io/hdf5_file.h"

namespace syncline::io {

struct ArrayType {
  DType dtype = DType::kFloat32;
  Shape shape;
};

// Writes `value` at `path` ("dense_1/kernel:0") below `group`, making the groups between. Throws IoError.
void write_array(const Hdf5Group& group, std::string_view path, const Array& value);

// Dtype and shape without reading the values. Throws IoError for what we do not read: external storage, virtual
// datasets, links, filters other than deflate, shuffle and fletcher32, other types, more bytes than the file can hold.
ArrayType array_type(const Hdf5Group& group, std::string_view path);

// The values. Throws IoError as array_type does, and when the bytes do not match their CRC-32.
Array read_array(const Hdf5Group& group, std::string_view path);

}  // namespace syncline::io
