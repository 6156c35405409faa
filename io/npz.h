// .npz: a zip archive of .npy files (io/npy.h), read and written through libzip.
//
// Read are stored and deflated members; encryption, other compressions and members that are no arrays are refused, but
// for `syncline.json`, the outline. Written are stored members, so that NumPy can map them; equal contents give equal
// bytes.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "io/array_file.h"

namespace syncline::io {

// Throws IoError.
std::unique_ptr<ArrayFile> open_npz(const std::string& path);

// A file's bytes, as a uint8 array. `path` is for messages. Throws IoError.
Array npz_image(const std::string& path, std::span<const NamedArray> arrays, const std::string& outline);

}  // namespace syncline::io
