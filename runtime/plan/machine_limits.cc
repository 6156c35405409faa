#include "runtime/plan/machine_limits.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/kernels/parallel.h"
#include "ops/kernels/product/gemm.h"
#include "syncline/timeline.h"

namespace syncline {
namespace {

// The least time of `runs` calls, in seconds. One more call comes first.
template <class Call>
double least_seconds(int runs, Call call) {
  call();
  std::int64_t least = INT64_MAX;
  for (int i = 0; i < runs; ++i) {
    const std::int64_t begin = timeline::now();
    call();
    least = std::min(least, timeline::now() - begin);
  }
  return static_cast<double>(std::max<std::int64_t>(least, 1)) * 1e-9;
}

double product_rate() {
  constexpr std::int64_t kSize = 768;
  const std::vector<float> a(kSize * kSize, 0.5f), b(kSize * kSize, 0.25f);
  std::vector<float> c(kSize * kSize);
  const double seconds = least_seconds(20, [&] {
    kernels::gemm<float>(kernels::Trans::kNo, kernels::Trans::kNo, kSize, kSize, kSize, 1, a.data(), kSize, b.data(),
                         kSize, 0, c.data(), kSize);
  });
  return 2.0 * kSize * kSize * kSize / seconds;
}

double memory_rate() {
  constexpr std::int64_t kSize = 8 << 20, kBlock = 64 << 10;
  const std::vector<float> b(kSize, 0.5f), c(kSize, 0.25f);
  std::vector<float> a(kSize);
  const double seconds = least_seconds(8, [&] {
    kernels::parallel_for(kSize / kBlock, 10e3, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin * kBlock; i < end * kBlock; ++i) a[i] = b[i] + 3 * c[i];
    });
  });
  return 3.0 * kSize * sizeof(float) / seconds;
}

}  // namespace

MachineLimits measure_machine() { return {product_rate(), memory_rate()}; }

}  // namespace syncline
