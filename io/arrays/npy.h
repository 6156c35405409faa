// .npy: NumPy's format of one array: a header that is a Python literal, then the values.
//
// Versions 1 to 3, both byte orders, C and Fortran order. Anything that is not one of our dtypes is refused: no
// objects, so nothing is ever unpickled.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "syncline/array.h"

namespace syncline::io {

struct NpyHeader {
  DType dtype = DType::kFloat32;
  Shape shape;
  bool fortran = false;   // the first axis runs fastest
  bool swapped = false;   // the values are big endian
  std::size_t bytes = 0;  // of the header, with the magic
};

// The most that an honest header has.
inline constexpr std::size_t kLongestNpyHeader = std::size_t{1} << 16;

// From the beginning of a file, all of it or at least kLongestNpyHeader bytes. `name` is for messages. Throws IoError.
NpyHeader parse_npy_header(const std::string& name, std::span<const std::byte> bytes);
// A whole file. Throws IoError.
Array parse_npy(const std::string& name, std::span<const std::byte> bytes);

// The header (version 1.0, as NumPy writes it) before the values of such an array in C order.
std::string npy_header(DType dtype, const Shape& shape);

// Throws IoError if `value` is of bools and one of its bytes is neither 0 nor 1, which must never be looked at.
void check_bools(const std::string& path, const std::string& name, const Array& value);

}  // namespace syncline::io
