#include "ops/graph/fill.h"

#include <algorithm>

#include "base/convert.h"

namespace syncline {
void Fill::run(const Attrs& a, const KernelArgs& k) {
  with_stored_dtype(k.out_dtype(),
                    [&]<class T>(T) { std::fill_n(k.output<T>(), k.out_shape().size(), convert<T>(a.value)); });
}

SYNCLINE_REGISTER_OP(Fill)

}  // namespace syncline
