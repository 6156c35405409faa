// Winograd's convolutions: the bits of an element do not depend on what is computed beside it.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "ops/kernels/convolution/conv.h"
#include "ops/kernels/convolution/winograd_transforms.h"
#include "ops/kernels/product/gemm.h"
#include "tests/ops/kernels/random_values.h"

namespace syncline::kernels {
namespace {

template <class T>
std::size_t differences(const std::vector<T>& a, const std::vector<T>& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += std::memcmp(&a[i], &b[i], sizeof(T)) != 0;
  return count;
}

TEST(Winograd, ElementsOfAKernelAreTransformedAlike) {
  constexpr std::int64_t kCount = 61, kTaps = 9;
  const std::vector<float> taps = random_values<float>(kTaps * kCount, 1);
  for_each_instruction_set([&](const std::string& set) {
    std::vector<float> together(winograd::kPlanes * kCount), apart(together.size());
    winograd::transform_kernel(taps.data(), kCount, kCount, together.data(), kCount);
    std::vector<float> back(taps.size()), back_apart(taps.size());
    winograd::transform_kernel_gradient(together.data(), kCount, kCount, back.data(), kCount);
    for (std::int64_t i = 0; i < kCount; ++i) {
      winograd::transform_kernel(taps.data() + i, kCount, 1, apart.data() + i, kCount);
      winograd::transform_kernel_gradient(together.data() + i, kCount, 1, back_apart.data() + i, kCount);
    }
    EXPECT_EQ(differences(together, apart), 0u) << set;
    EXPECT_EQ(differences(back, back_apart), 0u) << set;
  });
}

// Each image alone is one block of tiles, or few; all images are many. out_c is no multiple of a vector.
TEST(Winograd, AnImageHasTheSameBitsOnAnyRank) {
  const KeptRowBits no_blas;
  for (const std::int64_t out : {20, 28, 33}) {
    ConvGeometry all{.batch = 16, .of_all_ranks = 16, .in_h = 20, .in_w = 20, .in_c = 17};
    all.out_h = all.out_w = 20, all.out_c = out, all.k_h = all.k_w = 3, all.pad_top = all.pad_left = 1;
    ConvGeometry one = all;
    one.batch = 1;
    const auto x_image = static_cast<std::size_t>(all.in_h * all.in_w * all.in_c);
    const auto y_image = static_cast<std::size_t>(all.out_h * all.out_w * all.out_c);
    const std::vector<float> x = random_values<float>(16 * x_image, 1), dy = random_values<float>(16 * y_image, 2);
    const std::vector<float> w = random_values<float>(static_cast<std::size_t>(9 * all.in_c * out), 3);
    for_each_instruction_set([&](const std::string& set) {
      const ConvLoops<float>& loops = dense_conv<float>();
      const auto run = [&](const ConvGeometry& g, std::size_t image, std::vector<float>& y, std::vector<float>& dx) {
        const GuardedScratch forward(loops.forward_scratch_bytes(g)), back(loops.grad_input_scratch_bytes(g));
        loops.forward(g, x.data() + image * x_image, w.data(), y.data() + image * y_image, forward.data(), nullptr);
        loops.grad_input(g, dy.data() + image * y_image, w.data(), dx.data() + image * x_image, back.data(), nullptr);
      };
      std::vector<float> y(dy.size()), dx(x.size()), y_alone(dy.size()), dx_alone(x.size());
      run(all, 0, y, dx);
      for (std::size_t image = 0; image < 16; ++image) run(one, image, y_alone, dx_alone);
      EXPECT_EQ(differences(y, y_alone), 0u) << set << ", " << out << " channels";
      EXPECT_EQ(differences(dx, dx_alone), 0u) << set << ", " << out << " channels";
    });
  }
}

}  // namespace
}  // namespace syncline::kernels
