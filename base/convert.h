// convert<To>(x): the one meaning of a cast between dtypes, defined for every value.
//   to bool:               x != 0 (NaN is true)
//   floating to integer:   towards zero. What int64 (for int64) or int32 (for all others) does not hold, and NaN, give
//                          that type's lowest value, as x86 and TensorFlow on it have it; narrower types keep its low
//                          bits
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

// x in a type whose arithmetic wraps around instead of being undefined: integers compute modulo 2^bits, as NumPy and
// TensorFlow have it. Cast the result back. Floating numbers, and integers that C++ computes as int, stay what they
// are.
template <class T>
constexpr auto wrapping(T x) {
  if constexpr (std::is_integral_v<T> && sizeof(T) >= sizeof(int)) return static_cast<std::make_unsigned_t<T>>(x);
  else return x;
}

}  // namespace syncline
