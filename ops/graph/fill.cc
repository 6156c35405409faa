#include "ops/graph/fill.h"

#include <algorithm>

#include "base/convert.h"

namespace syncline {
namespace {

void fill_output(double value, const KernelArgs& k) {
  with_stored_dtype(k.out_dtype(),
                    [&]<class T>(T) { std::fill_n(k.output<T>(), k.out_shape().size(), convert<T>(value)); });
}

}  // namespace

void Fill::run(const Attrs& a, const KernelArgs& k) { fill_output(a.value, k); }
void FillLike::run(const Attrs& a, const KernelArgs& k) { fill_output(a.value, k); }

SYNCLINE_REGISTER_OP(Fill)
SYNCLINE_REGISTER_OP(FillLike)

}  // namespace syncline
