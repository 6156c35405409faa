// Element types, their names (NumPy's and Keras's) and a dispatch from a run-time DType to a C++ type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string_view>
#include <type_traits>

#include "syncline/error.h"
#include "syncline/float16.h"

#pragma GCC visibility push(default)
namespace syncline {

enum class DType : std::uint8_t {
  kBool,
  kUint8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kFloat32,
  kFloat64,
};

// Bytes of one element.
std::size_t size_of(DType dtype);
// "float32", "bool", ...
std::string_view name_of(DType dtype);
// The inverse of name_of. Throws DTypeError for an unknown name.
DType parse_dtype(std::string_view name);

inline bool is_floating(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}
inline bool is_integer(DType dtype) { return !is_floating(dtype) && dtype != DType::kBool; }

inline std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name_of(dtype); }

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return DType::kBool;
  else if constexpr (std::is_same_v<T, std::uint8_t>) return DType::kUint8;
  else if constexpr (std::is_same_v<T, std::int8_t>) return DType::kInt8;
  else if constexpr (std::is_same_v<T, std::int16_t>) return DType::kInt16;
  else if constexpr (std::is_same_v<T, std::int32_t>) return DType::kInt32;
  else if constexpr (std::is_same_v<T, std::int64_t>) return DType::kInt64;
  else if constexpr (std::is_same_v<T, Float16>) return DType::kFloat16;
  else if constexpr (std::is_same_v<T, float>) return DType::kFloat32;
  else if constexpr (std::is_same_v<T, double>) return DType::kFloat64;
}

// Calls f(T{}) with the C++ type of `dtype`, for code that stores, moves or converts elements. Takes every dtype.
template <class F>
decltype(auto) with_stored_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBool: return f(bool{});
    case DType::kUint8: return f(std::uint8_t{});
    case DType::kInt8: return f(std::int8_t{});
    case DType::kInt16: return f(std::int16_t{});
    case DType::kInt32: return f(std::int32_t{});
    case DType::kInt64: return f(std::int64_t{});
    case DType::kFloat16: return f(Float16{});
    case DType::kFloat32: return f(float{});
    case DType::kFloat64: return f(double{});
  }
  fail<InternalError>("unknown dtype code ", static_cast<int>(dtype));
}

// The same for all dtypes but those of `Excluded`.
template <class... Excluded, class F>
decltype(auto) with_dtype_except(DType dtype, F&& f) {
  return with_stored_dtype(dtype, [&]<class T>(T element) -> decltype(f(float{})) {
    if constexpr (!(std::is_same_v<T, Excluded> || ...)) return f(element);
    else
      fail<InternalError>("a kernel does not support elements of dtype ", dtype, " (code ", static_cast<int>(dtype),
                          ")");
  });
}
// The same for the dtypes that kernels compute with: all but float16 (ops/graph/op.h, kTakesFloat16).
template <class F>
decltype(auto) with_dtype(DType dtype, F&& f) {
  return with_dtype_except<Float16>(dtype, f);
}
// The same for the dtypes of with_dtype but bool.
template <class F>
decltype(auto) with_number(DType dtype, F&& f) {
  return with_dtype_except<bool, Float16>(dtype, f);
}

// The same for float32 and float64. Callers have checked is_floating in their shape and dtype rule.
template <class F>
decltype(auto) with_floating(DType dtype, F&& f) {
  if (dtype == DType::kFloat32) return f(float{});
  if (dtype == DType::kFloat64) return f(double{});
  fail<InternalError>("a kernel needs a floating dtype, not ", dtype);
}

// The same for int32 and int64, the dtypes of indices.
template <class F>
decltype(auto) with_index(DType dtype, F&& f) {
  if (dtype == DType::kInt32) return f(std::int32_t{});
  if (dtype == DType::kInt64) return f(std::int64_t{});
  fail<InternalError>("a kernel needs an index dtype (int32 or int64), not ", dtype);
}

}  // namespace syncline
#pragma GCC visibility pop
