#include "tools/array_diff.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

#include "tools/element.h"

namespace syncline::tools {
namespace {

template <std::size_t kBytes>
using Signed =
    std::conditional_t<kBytes == 2, std::int16_t, std::conditional_t<kBytes == 4, std::int32_t, std::int64_t>>;

// Maps a float's bits to an integer such that neighbours differ by one; both zeros become 0.
template <class T>
std::int64_t rank_of(T value) {
  using Bits = Signed<sizeof(T)>;
  const std::int64_t bits = std::bit_cast<Bits>(value);
  return bits >= 0 ? bits : static_cast<std::int64_t>(std::numeric_limits<Bits>::min()) - bits;
}

template <class T>
std::uint64_t ulps_between(T a, T b) {
  const std::int64_t x = rank_of(a), y = rank_of(b);
  return x > y ? static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y)
               : static_cast<std::uint64_t>(y) - static_cast<std::uint64_t>(x);
}

// long double holds the difference of two int64, and does not overflow for doubles.
template <class T>
void compare_finite(T a, T b, std::int64_t index, const Tolerances& tolerances, ArrayDifference& result) {
  const auto x = static_cast<long double>(static_cast<Wide<T>>(a)),
             y = static_cast<long double>(static_cast<Wide<T>>(b));
  const long double absolute = std::abs(x - y), magnitude = std::max(std::abs(x), std::abs(y));
  bool within = absolute <= tolerances.atol + tolerances.rtol * magnitude;
  result.absolute.offer(static_cast<double>(absolute), index);
  result.relative.offer(static_cast<double>(absolute / magnitude), index);
  if constexpr (kFloating<T>) {
    const std::uint64_t ulps = ulps_between(a, b);
    result.ulps->offer(ulps, index);
    within = within || ulps <= tolerances.ulps;
  }
  result.differing += within ? 0 : 1;
}

template <class T>
ArrayDifference compare_values(std::span<const T> a, std::span<const T> b, const Tolerances& tolerances) {
  ArrayDifference result;
  result.elements = static_cast<std::int64_t>(a.size());
  if constexpr (kFloating<T>) result.ulps.emplace();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<Wide<T>>(a[i]), y = static_cast<Wide<T>>(b[i]);
    if (x == y || (x != x && y != y)) continue;
    const auto index = static_cast<std::int64_t>(i);
    if (is_finite(x) && is_finite(y)) {
      compare_finite(a[i], b[i], index, tolerances, result);
      continue;
    }
    if (result.special++ == 0) result.special_at = index;
    ++result.differing;
  }
  return result;
}

}  // namespace

ArrayDifference compare(const Array& a, const Array& b, const Tolerances& tolerances) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape())
    fail<ValueError>("compare: the arrays are ", a.dtype(), " ", a.shape(), " and ", b.dtype(), " ", b.shape(),
                     "; they must have the same dtype and shape");
  return with_stored_dtype(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return compare_values<T>(a.values<T>(), b.values<T>(), tolerances);
  });
}

}  // namespace syncline::tools
