// Arrays as HDF5 datasets: contiguous, little endian, with a digest of their bytes (io/digest.h) as the attribute
// `xxh3_128`. Files of earlier versions have a CRC-32 instead, in `crc32`, which is still checked.
//
// HDF5 checks its metadata but reads a flipped bit of a contiguous dataset without a word; the attribute closes that
// gap. Needs a live Hdf5Session (io/hdf5_handle.h).
#pragma once

#include <string>
#include <string_view>

#include "base/array.h"
#include "io/hdf5_file.h"

namespace syncline::io {

struct ArrayHeader {
  std::string path;  // in the file, from its root
  DType dtype = DType::kFloat32;
  Shape shape;
  std::string digest;  // as stored; empty if the dataset has none
};

struct StoredArray {
  ArrayHeader header;
  Array value;
};

// Writes `value` at `path` ("dense_1/kernel:0") below `group`, making the groups between. Throws IoError.
ArrayHeader write_array(const Hdf5Group& group, std::string_view path, const Array& value);

// All but the values. Throws IoError for what we do not read: external storage, virtual datasets, links, filters other
// than deflate, shuffle and fletcher32, other types, more bytes than the file can hold.
ArrayHeader array_header(const Hdf5Group& group, std::string_view path);

// Throws IoError as array_header does, and when the bytes do not match their digest or CRC-32.
StoredArray read_array(const Hdf5Group& group, std::string_view path);

}  // namespace syncline::io
