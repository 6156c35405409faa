#include "ops/kernels/copy/strided_copy.h"

#include <array>
#include <cstring>

#include "ops/kernels/parallel.h"

namespace syncline::kernels {
namespace {

constexpr double kNanosecondsPerByte = 0.08;

struct Axis {
  std::int64_t dim = 1, in = 1, out = 1;
};

}  // namespace

void strided_copy(std::span<const std::int64_t> dims, std::span<const std::int64_t> in_stride,
                  std::span<const std::int64_t> out_stride, std::size_t element_size, const void* in, void* out) {
  std::array<Axis, 17> axes;  // innermost first; adjacent axes are merged if both sides allow it
  std::size_t count = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == 0) return;
    if (dims[i] == 1) continue;
    Axis& last = axes[count - 1];
    if (in_stride[i] == last.in * last.dim && out_stride[i] == last.out * last.dim) last.dim *= dims[i];
    else axes[count++] = {dims[i], in_stride[i], out_stride[i]};
  }
  std::int64_t runs = 1;
  for (std::size_t i = 1; i < count; ++i) runs *= axes[i].dim;
  const std::size_t bytes = static_cast<std::size_t>(axes[0].dim) * element_size;
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  parallel_for(runs, 2 + kNanosecondsPerByte * static_cast<double>(bytes), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t run = begin; run < end; ++run) {
      std::int64_t index = run, at_in = 0, at_out = 0;
      for (std::size_t i = 1; i < count; ++i) {
        at_in += index % axes[i].dim * axes[i].in;
        at_out += index % axes[i].dim * axes[i].out;
        index /= axes[i].dim;
      }
      const auto size = static_cast<std::int64_t>(element_size);
      std::memcpy(to + at_out * size, from + at_in * size, bytes);
    }
  });
}

}  // namespace syncline::kernels
