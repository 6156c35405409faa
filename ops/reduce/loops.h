// The innermost loops of reductions, for every instruction set. The order of operations depends on sizes only. Pure
// functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "syncline/dtype.h"

namespace syncline {

inline constexpr std::int64_t kWideRow = 2048;      // elements
inline constexpr std::int64_t kMostInUnit = 16384;  // elements

struct ReduceLoops {
  // acc[j] = the neutral element, for j < w
  void (*start)(void* acc, std::int64_t w);
  // acc[j] = f(acc[j], x[i * stride + j] for i < m), for j < w. If rows lie one behind the other (stride == w), calls
  // for consecutive parts of `whole` rows give the bits of one call, where all parts but the last have a multiple of
  // unit(whole, w) rows.
  void (*columns)(const void* x, std::int64_t m, std::int64_t w, std::int64_t stride, void* acc, std::int64_t whole);
  // A number of rows, at least 1; at most kMostInUnit elements if w < kWideRow.
  std::int64_t (*unit)(std::int64_t whole, std::int64_t w);
  // acc[j] = f(acc[j], parts[i * w + j] for i < m), for j < w: combines the results of m parts.
  void (*combine)(const void* parts, std::int64_t m, std::int64_t w, void* acc);
  std::int64_t bytes;  // of an element of acc
};

// The loops of "sum", "prod", "max", "min", "any" or "all". Throws InternalError for other names.
ReduceLoops reduce_loops(std::string_view op, DType dtype);

}  // namespace syncline
