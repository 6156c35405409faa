// Partial sums: arrays that several chunks of a loop computed, added in the order of the chunks.
//
// Thread-safe; allocates nothing; throws nothing.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/kernels/parallel.h"

namespace syncline::kernels {

// sum[i] = partials[i] + partials[count + i] + ..., in this order; with `add`, added to sum[i]. `sum` may be
// `partials`.
template <class T>
void add_partials(const T* partials, std::int64_t partial_count, std::int64_t count, T* sum, bool add = false) {
  parallel_for(count, 0.1 * static_cast<double>(partial_count), [&](std::int64_t begin, std::int64_t end) {
    if (!add && sum != partials) std::copy(partials + begin, partials + end, sum + begin);
    for (std::int64_t p = add ? 0 : 1; p < partial_count; ++p) {
      const T* part = partials + p * count;
      for (std::int64_t i = begin; i < end; ++i) sum[i] += part[i];
    }
  });
}

}  // namespace syncline::kernels
