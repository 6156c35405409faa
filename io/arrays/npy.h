// .npy: NumPy's format for one array: a header that is a Python literal, then the values.
//
// Reads versions 1 to 3, both byte orders, C and Fortran order. Refuses types that DType lacks, objects among them, so
// nothing is ever unpickled. Thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "syncline/array.h"

namespace syncline::io {

struct NpyHeader {
  DType dtype = DType::kFloat32;
  Shape shape;
  bool fortran = false;   // the first axis varies fastest
  bool swapped = false;   // the values are big-endian
  std::size_t bytes = 0;  // size of the header, magic included
};

// The size limit of a header in bytes.
inline constexpr std::size_t kLongestNpyHeader = std::size_t{1} << 16;

// Parses the first kLongestNpyHeader bytes of a file, or the whole file. `name` is for messages. Throws IoError.
NpyHeader parse_npy_header(const std::string& name, std::span<const std::byte> bytes);
// Parses a whole file. Throws IoError.
Array parse_npy(const std::string& name, std::span<const std::byte> bytes);

// The header (version 1.0, as NumPy writes it) of an array in C order.
std::string npy_header(DType dtype, const Shape& shape);

// Throws IoError if `value` holds bools and a byte is neither 0 nor 1: reading that byte as a bool is undefined.
void check_bools(const std::string& path, const std::string& name, const Array& value);

}  // namespace syncline::io
