// Chooses a convolution's algorithm, by geometry alone.
#include "ops/kernels/conv.h"

#include <algorithm>
#include <atomic>
#include <type_traits>

#include "ops/kernels/conv_paths.h"

namespace syncline::kernels {
namespace {

std::atomic<bool> winograd_enabled{true};

template <class T>
constexpr bool kFast = std::is_same_v<T, float>;

}  // namespace

void set_winograd(bool enabled) { winograd_enabled = enabled; }

// Scratch holds either algorithm where the switch decides, so a plan outlives a change of the switch.
template <class T>
std::size_t conv2d_scratch_bytes(const ConvGeometry& g) {
  if constexpr (kFast<T>) {
    if (conv::direct::fits(g)) return 0;
    if (conv::winograd::forward_fits(g)) {
      return std::max(conv::winograd::forward_scratch_bytes(g), conv::lowered::forward_scratch_bytes<T>(g));
    }
  }
  return conv::lowered::forward_scratch_bytes<T>(g);
}

template <class T>
void conv2d(const ConvGeometry& g, const T* x, const T* w, T* y, void* scratch) {
  if constexpr (kFast<T>) {
    if (conv::direct::fits(g)) return conv::direct::forward(g, x, w, y);
    if (winograd_enabled && conv::winograd::forward_fits(g)) return conv::winograd::forward(g, x, w, y, scratch);
  }
  conv::lowered::forward(g, x, w, y, scratch);
}

template <class T>
std::size_t conv2d_grad_input_scratch_bytes(const ConvGeometry& g) {
  if constexpr (kFast<T>) {
    if (conv::winograd::grad_input_fits(g)) {
      return std::max(conv::winograd::grad_input_scratch_bytes(g), conv::lowered::grad_input_scratch_bytes<T>(g));
    }
  }
  return conv::lowered::grad_input_scratch_bytes<T>(g);
}

template <class T>
void conv2d_grad_input(const ConvGeometry& g, const T* dy, const T* w, T* dx, void* scratch) {
  if constexpr (kFast<T>) {
    if (winograd_enabled && conv::winograd::grad_input_fits(g)) {
      return conv::winograd::grad_input(g, dy, w, dx, scratch);
    }
  }
  conv::lowered::grad_input(g, dy, w, dx, scratch);
}

template <class T>
std::size_t conv2d_grad_kernel_scratch_bytes(const ConvGeometry& g) {
  if constexpr (kFast<T>) {
    if (conv::direct::fits(g)) return conv::direct::grad_kernel_scratch_bytes(g);
    if (conv::winograd::grad_kernel_fits(g)) {
      return std::max(conv::winograd::grad_kernel_scratch_bytes(g), conv::lowered::grad_kernel_scratch_bytes<T>(g));
    }
  }
  return conv::lowered::grad_kernel_scratch_bytes<T>(g);
}

template <class T>
void conv2d_grad_kernel(const ConvGeometry& g, const T* x, const T* dy, T* dw, void* scratch) {
  if constexpr (kFast<T>) {
    if (conv::direct::fits(g)) return conv::direct::grad_kernel(g, x, dy, dw, scratch);
    if (winograd_enabled && conv::winograd::grad_kernel_fits(g)) {
      return conv::winograd::grad_kernel(g, x, dy, dw, scratch);
    }
  }
  conv::lowered::grad_kernel(g, x, dy, dw, scratch);
}

#define SYNCLINE_INSTANTIATE_CONV(T)                                                      \
  template std::size_t conv2d_scratch_bytes<T>(const ConvGeometry&);                      \
  template std::size_t conv2d_grad_input_scratch_bytes<T>(const ConvGeometry&);           \
  template std::size_t conv2d_grad_kernel_scratch_bytes<T>(const ConvGeometry&);          \
  template void conv2d<T>(const ConvGeometry&, const T*, const T*, T*, void*);            \
  template void conv2d_grad_input<T>(const ConvGeometry&, const T*, const T*, T*, void*); \
  template void conv2d_grad_kernel<T>(const ConvGeometry&, const T*, const T*, T*, void*);
SYNCLINE_INSTANTIATE_CONV(float)
SYNCLINE_INSTANTIATE_CONV(double)
#undef SYNCLINE_INSTANTIATE_CONV

}  // namespace syncline::kernels
