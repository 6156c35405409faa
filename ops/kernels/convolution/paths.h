// The algorithms of conv.h: supported geometries, scratch sizes and kernels.
//
// Work is divided into slots. A slot owns a part of the scratch and a contiguous range of items (blocks, images, lines
// or tiles), so neither memory nor bits depend on the number of threads.
#pragma once

#include <algorithm>
#include <cstddef>

#include "ops/kernels/convolution/conv.h"
#include "ops/kernels/parallel.h"
#include "ops/kernels/partial_sums.h"

namespace syncline::kernels::conv {

using Index = std::int64_t;

inline constexpr double kNanosecondsPerFlop = 0.01;  // about 100 GFLOP/s per core
inline constexpr double kSlotNanoseconds = 20'000;   // minimum work of a slot
inline constexpr Index kMaxSlots = 16;
inline constexpr Index kSlotBytesLimit = Index{32} << 20;  // for all slots; two slots are always allowed

constexpr Index round_up(Index value, Index multiple) { return (value + multiple - 1) / multiple * multiple; }

inline double flops(const ConvGeometry& g) {
  return 2.0 * static_cast<double>(g.batch * g.out_d * g.out_h * g.out_w) * static_cast<double>(g.k_d * g.k_h * g.k_w) *
         static_cast<double>(g.in_c * g.out_c);
}

inline ConvGeometry with_images(ConvGeometry g, Index images) {
  g.batch = images;
  return g;
}

// The geometry of grad_input as a forward convolution of dy with the flipped kernel. Requires strides of 1.
inline ConvGeometry grad_input_as_forward(const ConvGeometry& g) {
  ConvGeometry t = g;
  t.in_d = g.out_d, t.in_h = g.out_h, t.in_w = g.out_w, t.in_c = g.out_c;
  t.out_d = g.in_d, t.out_h = g.in_h, t.out_w = g.in_w, t.out_c = g.in_c;
  t.pad_front = (g.k_d - 1) * g.dilation_d - g.pad_front;
  t.pad_top = (g.k_h - 1) * g.dilation_h - g.pad_top;
  t.pad_left = (g.k_w - 1) * g.dilation_w - g.pad_left;
  return t;
}

// Divides items with a total cost of `flops` among slots of bytes_per_slot each.
inline Chunks divide_into_slots(Index items, double flops, Index bytes_per_slot) {
  const Index by_memory = std::max<Index>(2, kSlotBytesLimit / std::max<Index>(1, bytes_per_slot));
  const auto by_cost = static_cast<Index>(std::min(flops * kNanosecondsPerFlop / kSlotNanoseconds, 1e6));
  const Index slots = std::max<Index>(1, std::min({kMaxSlots, items, by_memory, by_cost}));
  const Index size = std::max<Index>(1, (items + slots - 1) / slots);
  return {items, size, (items + size - 1) / size};
}

// Any geometry: builds the matrix of patches, at once or one block of rows at a time, and multiplies it (float,
// double). By parts: only if it builds the matrix of each part alone at once.
namespace im2col {
template <class T>
std::size_t forward_scratch_bytes(const ConvGeometry& g);
template <class T>
std::size_t grad_input_scratch_bytes(const ConvGeometry& g);
template <class T>
std::size_t grad_kernel_scratch_bytes(const ConvGeometry& g);
template <class T>
void forward(const ConvGeometry& g, const T* x, const T* w, T* y, void* scratch, const Epilogue* epilogue);
template <class T>
void grad_input(const ConvGeometry& g, const T* dy, const T* w, T* dx, void* scratch, const Epilogue* epilogue);
template <class T>
void grad_kernel(const ConvGeometry& g, const T* x, const T* dy, T* dw, void* scratch);
template <class T>
std::optional<std::size_t> parts_scratch_bytes(const ConvGeometry& g, std::span<const Index> images);
template <class T>
void grad_kernel_by_parts(const ConvGeometry& g, std::span<const Index> images, const T* x, const T* dy, T* dw,
                          void* scratch);
}  // namespace im2col

// Few input channels: loops over pixels, vectorized over output channels (float).
namespace direct {
bool fits(const ConvGeometry& g);
std::size_t grad_kernel_scratch_bytes(const ConvGeometry& g);
void forward(const ConvGeometry& g, const float* x, const float* w, float* y, const Epilogue* epilogue);
void grad_kernel(const ConvGeometry& g, const float* x, const float* dy, float* dw, void* scratch);
}  // namespace direct

// Images without depth, 3x3 kernels of stride 1 with enough channels (float).
namespace winograd {
bool forward_fits(const ConvGeometry& g);
bool grad_input_fits(const ConvGeometry& g);
bool grad_kernel_fits(const ConvGeometry& g);
std::size_t forward_scratch_bytes(const ConvGeometry& g);
std::size_t grad_input_scratch_bytes(const ConvGeometry& g);
std::size_t grad_kernel_scratch_bytes(const ConvGeometry& g);
void forward(const ConvGeometry& g, const float* x, const float* w, float* y, void* scratch, const Epilogue* epilogue);
void grad_input(const ConvGeometry& g, const float* dy, const float* w, float* dx, void* scratch,
                const Epilogue* epilogue);
void grad_kernel(const ConvGeometry& g, const float* x, const float* dy, float* dw, void* scratch);
double forward_flops(const ConvGeometry& g);
double grad_input_flops(const ConvGeometry& g);
}  // namespace winograd

}  // namespace syncline::kernels::conv
