// Selects the algorithm of a dense convolution by geometry.
#include "ops/kernels/convolution/conv.h"

#include <type_traits>

#include "ops/kernels/convolution/paths.h"

namespace syncline::kernels {
namespace {

template <class T>
constexpr bool kFast = std::is_same_v<T, float>;

template <class T>
std::size_t forward_scratch_bytes(const ConvGeometry& g) {
  if constexpr (kFast<T>) {
    if (conv::direct::fits(g)) return 0;
    if (conv::winograd::forward_fits(g)) return conv::winograd::forward_scratch_bytes(g);
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
  if constexpr (kFast<T>) {
    if (conv::winograd::grad_input_fits(g)) return conv::winograd::grad_input_scratch_bytes(g);
  }
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
    if (conv::winograd::grad_kernel_fits(g)) return conv::winograd::grad_kernel_scratch_bytes(g);
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

// Of the kernel's gradient too, whose algorithms are selected alike and take the adjoint steps.
template <class T>
double forward_flops(const ConvGeometry& g) {
  if constexpr (kFast<T>) {
    if (!conv::direct::fits(g) && conv::winograd::forward_fits(g)) return conv::winograd::forward_flops(g);
  }
  return conv::flops(g);
}

template <class T>
double grad_input_flops(const ConvGeometry& g) {
  if constexpr (kFast<T>) {
    if (conv::winograd::grad_input_fits(g)) return conv::winograd::grad_input_flops(g);
  }
  return conv::flops(g);
}

template <class T>
constexpr ConvLoops<T> kDense{&forward_scratch_bytes<T>,
                              &forward<T>,
                              &grad_input_scratch_bytes<T>,
                              &grad_input<T>,
                              &grad_kernel_scratch_bytes<T>,
                              &grad_kernel<T>,
                              &parts_scratch_bytes<T>,
                              &conv::im2col::grad_kernel_by_parts<T>,
                              &forward_flops<T>,
                              &grad_input_flops<T>,
                              &forward_flops<T>};

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
