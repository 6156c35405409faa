// The scratch memory of convolutions.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/kernels/convolution/conv.h"
#include "tests/ops/kernels/random_values.h"

namespace syncline::kernels {
namespace {

ConvGeometry square_kernel(std::int64_t batch, std::int64_t height, std::int64_t width, std::int64_t in,
                           std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
  ConvGeometry g{.batch = batch, .in_h = height, .in_w = width, .in_c = in};
  g.out_h = (height + 2 * pad - kernel) / stride + 1, g.out_w = (width + 2 * pad - kernel) / stride + 1, g.out_c = out;
  g.k_h = g.k_w = kernel, g.stride_h = g.stride_w = stride, g.pad_top = g.pad_left = pad;
  return g;
}

// The images of all ranks select the algorithm.
TEST(Conv, RunsOfAShareOfTheImagesStayWithinTheirScratch) {
  const ConvGeometry geometries[] = {
      square_kernel(1, 12, 20, 17, 300, 3, 1, 1), square_kernel(1, 12, 20, 300, 17, 3, 1, 1),
      square_kernel(2, 7, 7, 17, 64, 3, 1, 0),    square_kernel(3, 4, 20, 16, 300, 3, 1, 1),
      square_kernel(1, 9, 9, 16, 200, 5, 1, 3),   square_kernel(3, 5, 6, 64, 16, 5, 1, 2),
  };
  const ConvLoops<float>& loops = dense_conv<float>();
  for (const ConvGeometry& g : geometries)
    for (const std::int64_t images : {g.batch, g.batch + 1, std::int64_t{4}, std::int64_t{64}}) {
      ConvGeometry run = g;
      run.of_all_ranks = images;
      const auto x = random_values<float>(static_cast<std::size_t>(g.batch * g.in_h * g.in_w * g.in_c), 1);
      const auto w = random_values<float>(static_cast<std::size_t>(g.k_h * g.k_w * g.in_c * g.out_c), 2);
      const auto dy = random_values<float>(static_cast<std::size_t>(g.batch * g.out_h * g.out_w * g.out_c), 3);
      std::vector<float> y(dy.size()), dx(x.size());
      const GuardedScratch forward(loops.forward_scratch_bytes(run)), grad_input(loops.grad_input_scratch_bytes(run));
      loops.forward(run, x.data(), w.data(), y.data(), forward.data(), nullptr);
      loops.grad_input(run, dy.data(), w.data(), dx.data(), grad_input.data(), nullptr);
      EXPECT_TRUE(forward.intact() && grad_input.intact()) << g.batch << " of " << images << " images " << g.in_h << 'x'
                                                           << g.in_w << ", " << g.in_c << " to " << g.out_c;
    }
}

}  // namespace
}  // namespace syncline::kernels
