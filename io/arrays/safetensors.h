// .safetensors: 8 bytes of length, a JSON header with names, dtypes, shapes and offsets, then the values.
//
// Read are the dtypes that DType has; BF16, F8_* and unsigned types beyond U8 are refused by name. The header must
// cover the data without gaps and overlaps, as the format demands.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "io/arrays/array_file.h"

namespace syncline::io {

// Opens a file; arrays are read from it one at a time. Throws IoError.
std::unique_ptr<ArrayFile> open_safetensors(const std::string& path);
// The same from bytes in memory, which `bytes` and the arrays read from it share. `path` is for messages.
std::unique_ptr<ArrayFile> parse_safetensors(const std::string& path, Array bytes);

// A file's bytes, as a uint8 array. `path` is for messages. Throws IoError for names that are not UTF-8.
Array safetensors_image(const std::string& path, std::span<const NamedArray> arrays, const std::string& outline);

}  // namespace syncline::io
