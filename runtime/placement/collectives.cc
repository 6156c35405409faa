#include "runtime/placement/collectives.h"

#include <cstring>

namespace syncline {

void Interleave::run(const Attrs& a, const KernelArgs& k) {
  const Shape& shape = k.out_shape();
  const std::int64_t element = static_cast<std::int64_t>(size_of(k.out_dtype()));
  const std::int64_t outer = shape.product(0, a.axis), inner = shape.product(a.axis + 1, shape.ndim()) * element;
  const auto* from = static_cast<const std::byte*>(k.in[0]);
  auto* to = static_cast<std::byte*>(k.out[0]);
  const std::int64_t row = shape[a.axis] * inner;
  for (std::size_t r = 0; r + 1 < a.begin.size(); ++r) {
    const std::int64_t part = (a.begin[r + 1] - a.begin[r]) * inner;
    for (std::int64_t o = 0; o < outer; ++o, from += part)
      std::memcpy(to + o * row + a.begin[r] * inner, from, static_cast<std::size_t>(part));
  }
}

void OwnRows::run(const Attrs& a, const KernelArgs& k) {
  const Shape &whole = k.in_shape(0), &own = k.out_shape();
  const std::int64_t element = static_cast<std::int64_t>(size_of(k.out_dtype()));
  const std::int64_t outer = whole.product(0, a.axis), inner = whole.product(a.axis + 1, whole.ndim()) * element;
  const auto* from = static_cast<const std::byte*>(k.in[0]) + a.begin * inner;
  auto* to = static_cast<std::byte*>(k.out[0]);
  const std::int64_t part = own[a.axis] * inner;
  for (std::int64_t o = 0; o < outer; ++o)
    std::memcpy(to + o * part, from + o * whole[a.axis] * inner, static_cast<std::size_t>(part));
}

void OwnPart::run(const Attrs& a, const KernelArgs& k) {
  const std::size_t bytes = static_cast<std::size_t>(k.out_shape().size()) * size_of(k.out_dtype());
  if (a.keeps) std::memcpy(k.out[0], k.in[0], bytes);
  else std::memset(k.out[0], 0, bytes);
}

void Copy::run(const Attrs&, const KernelArgs& k) {
  std::memcpy(k.out[0], k.in[0], static_cast<std::size_t>(k.out_shape().size()) * size_of(k.out_dtype()));
}

}  // namespace syncline
