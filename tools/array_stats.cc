#include "tools/array_stats.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>

#include "tools/element.h"

namespace syncline::tools {
namespace {

// Sums are long double: its 64-bit mantissa holds every int64, and no square of a double overflows.
template <class T>
ArrayStats moments(std::span<const T> values) {
  ArrayStats stats;
  Wide<T> min{}, max{};
  long double sum = 0, squares = 0;
  for (const T element : values) {
    const auto value = static_cast<Wide<T>>(element);
    if (!is_finite(value)) {
      ++(value != value ? stats.nan : stats.infinite);
      continue;
    }
    min = stats.finite == 0 ? value : std::min(min, value);
    max = stats.finite == 0 ? value : std::max(max, value);
    const auto exact = static_cast<long double>(value);
    sum += exact;
    squares += exact * exact;
    ++stats.finite;
  }
  if (stats.finite == 0) return stats;
  stats.min = min;
  stats.max = max;
  stats.mean = static_cast<double>(sum / static_cast<long double>(stats.finite));
  stats.norm = static_cast<double>(std::sqrt(squares));
  return stats;
}

template <class T>
std::vector<std::int64_t> histogram(std::span<const T> values, long double min, long double max, int bins) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(bins));
  const long double scale = max > min ? bins / (max - min) : 0;
  for (const T element : values) {
    const auto value = static_cast<Wide<T>>(element);
    if (!is_finite(value)) continue;
    const auto bin = static_cast<int>((static_cast<long double>(value) - min) * scale);
    ++counts[static_cast<std::size_t>(std::clamp(bin, 0, bins - 1))];
  }
  return counts;
}

long double exact(const Number& number) {
  return std::visit([](auto value) { return static_cast<long double>(value); }, number);
}

}  // namespace

ArrayStats stats_of(const Array& array, int bins) {
  return with_stored_dtype(array.dtype(), [&](auto zero) {
    const auto values = array.values<decltype(zero)>();
    ArrayStats stats = moments(values);
    if (bins > 0 && stats.finite > 0) stats.histogram = histogram(values, exact(*stats.min), exact(*stats.max), bins);
    return stats;
  });
}

}  // namespace syncline::tools
