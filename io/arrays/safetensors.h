// .safetensors: 8 bytes of header length, a JSON header with names, dtypes, shapes and offsets, then the values.
//
// Reads the dtypes of DType. Refuses BF16, F8_* and unsigned types beyond U8 by name. The header must cover the data
// without gaps and overlaps, as the format demands.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "io/arrays/array_file.h"

namespace syncline::io {

// Opens a file. Throws IoError.
std::unique_ptr<ArrayFile> open_safetensors(const std::string& path);
// Parses a file in memory. The arrays read from it share the memory of `bytes`. `path` is for messages.
std::unique_ptr<ArrayFile> parse_safetensors(const std::string& path, Array bytes);

// The bytes of a file, as a uint8 array. `path` is for messages. Throws IoError for names that are not UTF-8.
Array serialize_safetensors(const std::string& path, std::span<const NamedArray> arrays, const std::string& outline);

}  // namespace syncline::io
