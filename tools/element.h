// The type in which the tools compute with an element: double for floats, int64 for all others.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "syncline/float16.h"

namespace syncline::tools {

template <class T>
constexpr bool kFloating = std::is_floating_point_v<T> || std::is_same_v<T, Float16>;
template <class T>
using Wide = std::conditional_t<kFloating<T>, double, std::int64_t>;

inline bool is_finite(double value) { return std::isfinite(value); }
inline bool is_finite(std::int64_t) { return true; }

}  // namespace syncline::tools
