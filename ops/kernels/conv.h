// Two-dimensional convolution over NHWC images with HWIO kernels, and its two gradients.
//
//   y[n, i, j, k] = sum over (a, b, c) of x[n, i * stride_h + a * dilation_h - pad_top, j * stride_w + ..., c] * w[a,
//   b, c, k]
//
// where x is 0 outside the image. Kernels do not check arguments. Scratch is the caller's, 64-byte aligned, at least as
// large as the matching ..._scratch_bytes says (which may be 0), and holds nothing between calls; it does not depend on
// the number of threads. Nothing else is allocated. Thread-safe where outputs and scratch are not shared.
//
// The algorithm depends on the geometry alone: Winograd's F(4x4, 3x3) for float 3x3 kernels of stride 1 with 16
// channels or more (error about 1e-5 of the largest value), a direct loop for float images of up to 4 channels,
// otherwise one matrix product a block of rows. Sums are split by geometry too, so bits do not depend on the number of
// threads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace syncline::kernels {

struct ConvGeometry {
  std::int64_t batch = 1;
  std::int64_t in_h = 1, in_w = 1, in_c = 1;
  std::int64_t out_h = 1, out_w = 1, out_c = 1;
  std::int64_t k_h = 1, k_w = 1;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t dilation_h = 1, dilation_w = 1;
  std::int64_t pad_top = 0, pad_left = 0;  // the pads below and to the right follow from the other sizes
};

// Turns Winograd's algorithm on (the default) or off for the whole process. Not to be called while a convolution runs.
void set_winograd(bool enabled);

template <class T>
std::size_t conv2d_scratch_bytes(const ConvGeometry& g);
template <class T>
void conv2d(const ConvGeometry& g, const T* x, const T* w, T* y, void* scratch);

// dx, the gradient with respect to x; every element is written.
template <class T>
std::size_t conv2d_grad_input_scratch_bytes(const ConvGeometry& g);
template <class T>
void conv2d_grad_input(const ConvGeometry& g, const T* dy, const T* w, T* dx, void* scratch);

// dw, the gradient with respect to w; every element is written.
template <class T>
std::size_t conv2d_grad_kernel_scratch_bytes(const ConvGeometry& g);
template <class T>
void conv2d_grad_kernel(const ConvGeometry& g, const T* x, const T* dy, T* dw, void* scratch);

}  // namespace syncline::kernels
