#include "ops/graph/fill.h"

#include <algorithm>

#include "base/convert.h"
#include "ops/kernels/copy/bytes.h"

namespace syncline {

void Fill::run(const Attrs& a, const KernelArgs& k) {
  const double cost = kernels::kNanosecondsPerByte * static_cast<double>(size_of(k.out_dtype()));
  with_stored_dtype(k.out_dtype(), [&]<class T>(T) {
    kernels::parallel_for(k.out_shape().size(), cost, [&](std::int64_t begin, std::int64_t end) {
      std::fill(k.output<T>() + begin, k.output<T>() + end, convert<T>(a.value));
    });
  });
}

SYNCLINE_REGISTER_OP(Fill)

}  // namespace syncline
