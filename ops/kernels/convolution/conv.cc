// Selects the algorithm of a dense convolution by geometry.
#include "ops/kernels/convolution/conv.h"

#include <algorithm>
#include <type_traits>

#include "ops/kernels/convolution/paths.h"

namespace syncline::kernels {
namespace {

template <class T>
constexpr bool kFast = std::is_same_v<T, float>;

// Winograd's scratch where the images of all ranks select it, and that of matrix products where fewer images of other
// ranks would not: the size depends on this rank's images only.
std::size_t scratch_bytes(const ConvGeometry& g, bool (*winograd_fits)(const ConvGeometry&),
                          std::size_t (*winograd_bytes)(const ConvGeometry&),
                          std::size_t (*product_bytes)(const ConvGeometry&)) {
  ConvGeometry alone = g;
  alone.of_all_ranks = 0;
  const std::size_t bytes = winograd_fits(g) ? winograd_bytes(g) : 0;
  return winograd_fits(alone) ? bytes : std::max(bytes, product_bytes(g));
}

template <class T>
std::size_t forward_scratch_bytes(const ConvGeometry& g) {
  if constexpr (kFast<T>) {
    if (conv::direct::fits(g)) return 0;
    return scratch_bytes(g, conv::winograd::forward_fits, conv::winograd::forward_scratch_bytes,
                         conv::im2col::forward_scratch_bytes<T>);
  }
  return conv::im2col::forward_scratch_bytes<T>(g);
}

template <class T>
void forward(const ConvGeometry& g, const T* x, const T* w, T* y, void* scratch, const Epilogue* epilogue) {
  if constexpr (kFast<T>) {
    if (conv::direct::fits(g)) return conv::direct::forward(g, x, w, y, epilogue);
    if (conv::winograd::forward_fits(g)) return conv::winograd::forward(g, x, w, y, scratch, epilogue);
  }
  conv::im2col::forward(g, x, w, y, scratch, epilogue);
}

template <class T>
std::size_t grad_input_scratch_bytes(const ConvGeometry& g) {
  if constexpr (kFast<T>)
    return scratch_bytes(g, conv::winograd::grad_input_fits, conv::winograd::grad_input_scratch_bytes,
                         conv::im2col::grad_input_scratch_bytes<T>);
  return conv::im2col::grad_input_scratch_bytes<T>(g);
}

template <class T>
void grad_input(const ConvGeometry& g, const T* dy, const T* w, T* dx, void* scratch, const Epilogue* epilogue) {
  if constexpr (kFast<T>) {
    if (conv::winograd::grad_input_fits(g)) return conv::winograd::grad_input(g, dy, w, dx, scratch, epilogue);
  }
  conv::im2col::grad_input(g, dy, w, dx, scratch, epilogue);
}

template <class T>
std::size_t grad_kernel_scratch_bytes(const ConvGeometry& g) {
  if constexpr (kFast<T>) {
    if (conv::direct::fits(g)) return conv::direct::grad_kernel_scratch_bytes(g);
    return scratch_bytes(g, conv::winograd::grad_kernel_fits, conv::winograd::grad_kernel_scratch_bytes,
                         conv::im2col::grad_kernel_scratch_bytes<T>);
  }
  return conv::im2col::grad_kernel_scratch_bytes<T>(g);
}

template <class T>
void grad_kernel(const ConvGeometry& g, const T* x, const T* dy, T* dw, void* scratch) {
  if constexpr (kFast<T>) {
    if (conv::direct::fits(g)) return conv::direct::grad_kernel(g, x, dy, dw, scratch);
    if (conv::winograd::grad_kernel_fits(g)) return conv::winograd::grad_kernel(g, x, dy, dw, scratch);
  }
  conv::im2col::grad_kernel(g, x, dy, dw, scratch);
}

// Matrix products only. Direct loops have small sums, and Winograd would save nothing: each part's sums are transformed
// back.
template <class T>
std::optional<std::size_t> parts_scratch_bytes(const ConvGeometry& g, std::span<const std::int64_t> images) {
  if constexpr (kFast<T>) {
    if (conv::direct::fits(g)) return std::nullopt;
    for (std::size_t i = 1; i < images.size(); ++i)
      if (conv::winograd::grad_kernel_fits(conv::with_images(g, images[i] - images[i - 1]))) return std::nullopt;
  }
  return conv::im2col::parts_scratch_bytes<T>(g, images);
}

template <class T>
constexpr ConvLoops<T> kDense{&forward_scratch_bytes<T>,     &forward<T>,
                              &grad_input_scratch_bytes<T>,  &grad_input<T>,
                              &grad_kernel_scratch_bytes<T>, &grad_kernel<T>,
                              &parts_scratch_bytes<T>,       &conv::im2col::grad_kernel_by_parts<T>};

}  // namespace

template <>
const ConvLoops<float>& dense_conv<float>() {
  return kDense<float>;
}
template <>
const ConvLoops<double>& dense_conv<double>() {
  return kDense<double>;
}

}  // namespace syncline::kernels
