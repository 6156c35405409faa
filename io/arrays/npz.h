// .npz: a zip archive of .npy files (io/arrays/npy.h), read and written through libzip.
//
// Read are stored and deflated members; encryption, other compressions and members that are no arrays are refused, but
// for `syncline.json`, the outline. Written are stored members, so that NumPy can map them; equal contents give equal
// bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/arrays/array_file.h"
#include "io/files/byte_file.h"

namespace syncline::io {

// Throws IoError.
std::unique_ptr<ArrayFile> open_npz(const std::string& path);

// An array of an archive as a file of its own, npy header included.
struct NpzMember {
  std::string name;
  std::unique_ptr<ByteFile> file;
};
// The arrays called `names`, in this order, or all. Stored ones are read in place, and then without a look at their
// CRC-32; deflated ones are unpacked here, up to `memory` bytes together. The files share one archive: they are used by
// one thread at a time. Throws IoError.
std::vector<NpzMember> open_npz_members(const std::string& path, std::span<const std::string> names,
                                        std::size_t memory);

// A file's bytes, as a uint8 array. `path` is for messages. Throws IoError.
Array npz_image(const std::string& path, std::span<const NamedArray> arrays, const std::string& outline);

}  // namespace syncline::io
