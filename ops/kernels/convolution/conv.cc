// Selects the algorithm of a dense convolution by geometry.
#include "ops/kernels/convolution/conv.h"

#include <algorithm>
#include <atomic>
#include <type_traits>

#include "ops/kernels/convolution/paths.h"

namespace syncline::kernels {
namespace {

std::atomic<bool> winograd_enabled{true};

template <class T>
constexpr bool kFast = std::is_same_v<T, float>;

// The scratch fits both algorithms if set_winograd selects between them, so a plan remains valid after a change.
template <class T>
std::size_t forward_scratch_bytes(const ConvGeometry& g) {
  if constexpr (kFast<T>) {
    if (conv::direct::fits(g)) return 0;
    if (conv::winograd::forward_fits(g)) {
      return std::max(conv::winograd::forward_scratch_bytes(g), conv::im2col::forward_scratch_bytes<T>(g));
    }
  }
  return conv::im2col::forward_scratch_bytes<T>(g);
}

template <class T>
void forward(const ConvGeometry& g, const T* x, const T* w, T* y, void* scratch) {
  if constexpr (kFast<T>) {
    if (conv::direct::fits(g)) return conv::direct::forward(g, x, w, y);
    if (winograd_enabled && conv::winograd::forward_fits(g)) return conv::winograd::forward(g, x, w, y, scratch);
  }
  conv::im2col::forward(g, x, w, y, scratch);
}

template <class T>
std::size_t grad_input_scratch_bytes(const ConvGeometry& g) {
  if constexpr (kFast<T>) {
    if (conv::winograd::grad_input_fits(g)) {
      return std::max(conv::winograd::grad_input_scratch_bytes(g), conv::im2col::grad_input_scratch_bytes<T>(g));
    }
  }
  return conv::im2col::grad_input_scratch_bytes<T>(g);
}

template <class T>
void grad_input(const ConvGeometry& g, const T* dy, const T* w, T* dx, void* scratch) {
  if constexpr (kFast<T>) {
    if (winograd_enabled && conv::winograd::grad_input_fits(g)) {
      return conv::winograd::grad_input(g, dy, w, dx, scratch);
    }
  }
  conv::im2col::grad_input(g, dy, w, dx, scratch);
}

template <class T>
std::size_t grad_kernel_scratch_bytes(const ConvGeometry& g) {
  if constexpr (kFast<T>) {
    if (conv::direct::fits(g)) return conv::direct::grad_kernel_scratch_bytes(g);
    if (conv::winograd::grad_kernel_fits(g)) {
      return std::max(conv::winograd::grad_kernel_scratch_bytes(g), conv::im2col::grad_kernel_scratch_bytes<T>(g));
    }
  }
  return conv::im2col::grad_kernel_scratch_bytes<T>(g);
}

template <class T>
void grad_kernel(const ConvGeometry& g, const T* x, const T* dy, T* dw, void* scratch) {
  if constexpr (kFast<T>) {
    if (conv::direct::fits(g)) return conv::direct::grad_kernel(g, x, dy, dw, scratch);
    if (winograd_enabled && conv::winograd::grad_kernel_fits(g)) {
      return conv::winograd::grad_kernel(g, x, dy, dw, scratch);
    }
  }
  conv::im2col::grad_kernel(g, x, dy, dw, scratch);
}

template <class T>
constexpr ConvLoops<T> kDense{&forward_scratch_bytes<T>,     &forward<T>,
                              &grad_input_scratch_bytes<T>,  &grad_input<T>,
                              &grad_kernel_scratch_bytes<T>, &grad_kernel<T>};

}  // namespace

void set_winograd(bool enabled) { winograd_enabled = enabled; }

template <>
const ConvLoops<float>& dense_conv<float>() {
  return kDense<float>;
}
template <>
const ConvLoops<double>& dense_conv<double>() {
  return kDense<double>;
}

}  // namespace syncline::kernels
