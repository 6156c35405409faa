// .npz: a zip archive of .npy files (io/arrays/npy.h), read and written through libzip.
//
// Reads stored and deflated members. Refuses encryption, other compressions, and members that are not arrays, except
// `syncline.json`, the outline. Writes stored members, which readers can map; equal contents give equal bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/arrays/array_file.h"
#include "io/files/random_access_file.h"

namespace syncline::io {

// Throws IoError.
std::unique_ptr<ArrayFile> open_npz(const std::string& path);

// An array of an archive as a RandomAccessFile, npy header included.
struct NpzMember {
  std::string name;
  std::unique_ptr<RandomAccessFile> file;
};
// The arrays called `names`, in this order; all arrays if `names` is empty. Stored members are read in place, without a
// check of their CRC-32. Deflated members are unpacked here, up to `memory` bytes in total. The files share one
// archive, so one thread at a time may use them. Throws IoError.
std::vector<NpzMember> open_npz_members(const std::string& path, std::span<const std::string> names,
                                        std::size_t memory);

// The bytes of a file, as a uint8 array. `path` is for messages. Throws IoError.
Array serialize_npz(const std::string& path, std::span<const NamedArray> arrays, const std::string& outline);

}  // namespace syncline::io
