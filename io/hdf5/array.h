// Arrays as HDF5 datasets: contiguous, little endian, with a digest of their bytes (io/files/digest.h) as the attribute
// `xxh3_128`. Files of earlier versions have a CRC-32 instead, in `crc32`, which is still checked.
//
// HDF5 checks its metadata but reads a flipped bit of a contiguous dataset without a word; the attribute closes that
// gap. Needs a live Hdf5Session (io/hdf5/handle.h).
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
  std::string path;  // in the file, from its root
  DType dtype = DType::kFloat32;
  Shape shape;
  std::string digest;  // as stored; empty if the dataset has none
};

// Writes `value` at `path` ("dense_1/kernel:0") below `group` of a new file, making the groups between. Throws IoError.
ArrayHeader write_array(Hdf5File& file, const Hdf5Group& group, std::string_view path, const Array& value);

// "dense_1" and "kernel:0" of "dense_1/kernel:0".
std::pair<std::string_view, std::string_view> split_path(std::string_view path);

// Opens the dataset at `path` below `group`, as a group without members: it has attributes like one.
Hdf5Group open_dataset(const Hdf5Group& group, std::string_view path);

// All but the values. Throws IoError for what we do not read: external storage, virtual datasets, links, filters other
// than deflate, shuffle and fletcher32, other types, more bytes than the file can hold.
ArrayHeader header_of(const Hdf5Group& dataset);

// Where in the file the array's bytes are, if they are there as they are in memory, in one piece.
std::optional<std::uint64_t> place_of_bytes(const Hdf5Group& dataset, const ArrayHeader& header);
// Such values in memory, as HDF5 knows them.
Hdf5Handle memory_type(DType dtype, const Hdf5Place& place);
// Reads any dataset that header_of took, through HDF5. Nothing is checked.
void read_converted(const Hdf5Group& dataset, Array& value);

}  // namespace syncline::io
