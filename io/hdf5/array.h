// Arrays as HDF5 datasets: contiguous, little-endian, with a digest of their bytes (io/files/digest.h) in the attribute
// `xxh3_128`. Files of earlier versions have a CRC-32 in `crc32` instead, which readers still check.
//
// HDF5 checks its metadata, but does not detect a flipped bit in a contiguous dataset; the digest does. Needs a live
// Hdf5Session (io/hdf5/handle.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "io/hdf5/file.h"
#include "syncline/array.h"

namespace syncline::io {

struct ArrayHeader {
  std::string path;  // absolute, in the file
  DType dtype = DType::kFloat32;
  Shape shape;
  std::string digest;  // as stored; empty if absent
};

// Writes `value` at `path` ("dense_1/kernel:0") below `group` of a new file and creates missing groups. Throws IoError.
ArrayHeader write_array(Hdf5File& file, const Hdf5Group& group, std::string_view path, const Array& value);

// "dense_1" and "kernel:0" of "dense_1/kernel:0".
std::pair<std::string_view, std::string_view> split_path(std::string_view path);

// Opens the dataset at `path` below `group`. An Hdf5Group gives access to its attributes. Throws IoError, also
// for links.
Hdf5Group open_dataset(const Hdf5Group& group, std::string_view path);

// Reads all but the values. Throws IoError for unsupported datasets: external storage, virtual datasets, filters other
// than deflate, shuffle and fletcher32, unknown types, more bytes than the file can hold.
ArrayHeader header_of(const Hdf5Group& dataset);

// The file offset of the values, if the file stores them in one piece in the memory's format; else empty.
std::optional<std::uint64_t> place_of_bytes(const Hdf5Group& dataset, const ArrayHeader& header);
// HDF5's type for values of `dtype` in memory.
Hdf5Handle memory_type(DType dtype, const Hdf5Location& location);
// Reads a dataset accepted by header_of through HDF5, without checking the digest.
void read_converted(const Hdf5Group& dataset, Array& value);

}  // namespace syncline::io
