// Convolution over images with channels last, and its two gradients: dense and depthwise, in one to three dimensions.
//
//   y[n, z, i, j, k] = sum over (e, a, b, c) of
//       x[n, z * stride_d + e * dilation_d - pad_front, i * stride_h + a * dilation_h - pad_top, j * ..., c]
//       * w[e, a, b, c, k]
//
// where x is 0 outside the image. Images are NDHWC, kernels DHWIO. Depthwise: w[a, b, c], and channel c of y depends
// only on channel c of x.
//
// Kernels do not check arguments. The caller owns the scratch: 64-byte aligned, at least as large as the matching
// ..._scratch_bytes returns for the same geometry (possibly 0), with no content between calls. Its size does not depend
// on the number of threads. Kernels allocate nothing else, but for a buffer of products a thread (product/gemm.h).
// Thread-safe if outputs and scratch are not shared.
//
// Geometry alone selects the algorithm, the same on all ranks. Float images of up to 4 channels: a direct loop. Float
// images without depth, for 3x3 kernels of stride 1 with at least 16 channels: Winograd's F(4x4, 3x3) (error about 1e-5
// of the largest value). Otherwise: matrix products. Geometry also determines the split of sums, so bits do not depend
// on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ops/kernels/epilogue.h"

namespace syncline::kernels {

struct ConvGeometry {
  std::int64_t batch = 1;
  std::int64_t of_all_ranks = 0;  // images, if `batch` is a rank's share. The larger of both selects the algorithm
  std::int64_t in_d = 1, in_h = 1, in_w = 1, in_c = 1;
  std::int64_t out_d = 1, out_h = 1, out_w = 1, out_c = 1;
  std::int64_t k_d = 1, k_h = 1, k_w = 1;
  std::int64_t stride_d = 1, stride_h = 1, stride_w = 1;
  std::int64_t dilation_d = 1, dilation_h = 1, dilation_w = 1;
  std::int64_t pad_front = 0, pad_top = 0, pad_left = 0;  // the other sizes determine the end pads

  bool is_flat() const { return in_d == 1 && out_d == 1 && k_d == 1 && pad_front == 0; }
};

// The kernels of one kind of convolution. grad_input computes dx, the gradient with respect to x; grad_kernel computes
// dw, the gradient with respect to w. They write every element of the result. The epilogue, of y or dx,
// may be null.
template <class T>
struct ConvLoops {
  std::size_t (*forward_scratch_bytes)(const ConvGeometry& g);
  void (*forward)(const ConvGeometry& g, const T* x, const T* w, T* y, void* scratch, const Epilogue* epilogue);
  std::size_t (*grad_input_scratch_bytes)(const ConvGeometry& g);
  void (*grad_input)(const ConvGeometry& g, const T* dy, const T* w, T* dx, void* scratch, const Epilogue* epilogue);
  std::size_t (*grad_kernel_scratch_bytes)(const ConvGeometry& g);
  void (*grad_kernel)(const ConvGeometry& g, const T* x, const T* dy, T* dw, void* scratch);
  // The gradient as a sum over parts of the batch: part i has the images [images[i], images[i + 1]). The gradients of
  // the parts, each with the bits that it has alone, are added along the tree of part_tree.h. parts_scratch_bytes
  // returns no size if it does not support these parts. Both are null for depthwise kernels. Requires a KeptRowBits
  // (product/gemm.h).
  std::optional<std::size_t> (*parts_scratch_bytes)(const ConvGeometry& g,
                                                    std::span<const std::int64_t> images) = nullptr;
  void (*grad_kernel_by_parts)(const ConvGeometry& g, std::span<const std::int64_t> images, const T* x, const T* dy,
                               T* dw, void* scratch) = nullptr;
  // Operations of the algorithms that the geometry selects; Winograd's needs fewer than the plain one.
  double (*forward_flops)(const ConvGeometry& g) = nullptr;
  double (*grad_input_flops)(const ConvGeometry& g) = nullptr;
  double (*grad_kernel_flops)(const ConvGeometry& g) = nullptr;
};

// Dense and depthwise kernels exist only for float and double.
template <class T>
const ConvLoops<T>& dense_conv();
// Requires in_c == out_c and images without depth.
template <class T>
const ConvLoops<T>& depthwise_conv();

template <>
const ConvLoops<float>& dense_conv<float>();
template <>
const ConvLoops<double>& dense_conv<double>();
template <>
const ConvLoops<float>& depthwise_conv<float>();
template <>
const ConvLoops<double>& depthwise_conv<double>();

}  // namespace syncline::kernels
