// convert<To>(x): defines the cast between dtypes for every value.
//   to bool:               x != 0 (NaN is true)
//   floating to integer:   towards zero, through int64 (for int64) or int32 (for all others). NaN and values out of
//                          range of that type give its lowest value, as TensorFlow on x86 does; narrower types keep
//                          its low bits
//   integer to integer:    keeps the low bits
//   to floating:           to the nearest, ties to even; too large: infinity
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "syncline/float16.h"

namespace syncline {

template <class Wide, class From>
constexpr Wide truncate(From x) {
  constexpr From kLowest = static_cast<From>(std::numeric_limits<Wide>::lowest());  // a power of two: exact
  const bool fits = x >= kLowest && x < -kLowest;
  const Wide whole = static_cast<Wide>(fits ? x : From{0});
  return fits ? whole : std::numeric_limits<Wide>::lowest();
}

template <class To, class From>
constexpr To convert(From x) {
  if constexpr (std::is_same_v<To, From>) return x;
  else if constexpr (std::is_same_v<From, Float16>) return convert<To>(static_cast<float>(x));
  else if constexpr (std::is_same_v<To, bool>) return x != From{0};
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    return static_cast<To>(truncate<std::conditional_t<sizeof(To) == 8, std::int64_t, std::int32_t>>(x));
  else return static_cast<To>(x);
}

// x in a type whose arithmetic wraps around instead of being undefined: integers compute modulo 2^bits, as in NumPy and
// TensorFlow. Cast the result back. Returns floating numbers, and integers that C++ promotes to int, unchanged.
template <class T>
constexpr auto wrapping(T x) {
  if constexpr (std::is_integral_v<T> && sizeof(T) >= sizeof(int)) return static_cast<std::make_unsigned_t<T>>(x);
  else return x;
}

}  // namespace syncline
