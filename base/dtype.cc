#include "syncline/dtype.h"

#include <array>

namespace syncline {
namespace {

constexpr std::array<std::string_view, 9> kNames{"bool",  "uint8",   "int8",    "int16",  "int32",
                                                 "int64", "float16", "float32", "float64"};

}  // namespace

std::size_t size_of(DType dtype) {
  return with_stored_dtype(dtype, []<class T>(T) { return sizeof(T); });
}

std::string_view name_of(DType dtype) { return kNames.at(static_cast<std::size_t>(dtype)); }

DType parse_dtype(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<DType>(i);
  fail<DTypeError>("unknown dtype '", name,
                   "'; the known dtypes are bool, uint8, int8, int16, int32, int64, float16, float32, "
                   "float64");
}

}  // namespace syncline
