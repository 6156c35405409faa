#include "syncline/dtype.h"

#include <array>
#include <utility>

namespace syncline {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
};

constexpr std::array kRows{
    Row{DType::kBool, "bool"},       Row{DType::kUint8, "uint8"},     Row{DType::kInt8, "int8"},
    Row{DType::kInt16, "int16"},     Row{DType::kInt32, "int32"},     Row{DType::kInt64, "int64"},
    Row{DType::kFloat16, "float16"}, Row{DType::kFloat32, "float32"}, Row{DType::kFloat64, "float64"},
};

}  // namespace

std::size_t size_of(DType dtype) {
  return with_stored_dtype(dtype, []<class T>(T) { return sizeof(T); });
}

std::string_view name_of(DType dtype) { return kRows.at(static_cast<std::size_t>(dtype)).name; }

DType parse_dtype(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.dtype;
  fail<DTypeError>("unknown dtype '", name,
                   "'; the known dtypes are bool, uint8, int8, int16, int32, int64, float16, float32, "
                   "float64");
}

}  // namespace syncline
