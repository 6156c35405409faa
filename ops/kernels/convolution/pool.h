// Max and average pooling over NDHWC images, and their gradients. Images with fewer axes have a depth of 1.
//
// Cells outside the image are ignored: the average divides by the number of cells inside, like TensorFlow. A window
// entirely outside gives negative infinity (max) or 0 (average); a window that contains NaN gives NaN. The max gradient
// goes to the first cell, in row order, that holds the maximum. Kernels check nothing and allocate nothing. Bits do not
// depend on the number of threads. Thread-safe if outputs are not shared.
#pragma once

#include <cstdint>

namespace syncline::kernels {

struct PoolGeometry {
  std::int64_t batch = 1;
  std::int64_t in_d = 1, in_h = 1, in_w = 1, channels = 1;
  std::int64_t out_d = 1, out_h = 1, out_w = 1;
  std::int64_t k_d = 1, k_h = 1, k_w = 1;
  std::int64_t stride_d = 1, stride_h = 1, stride_w = 1;
  std::int64_t pad_front = 0, pad_top = 0, pad_left = 0;

  std::int64_t out_lines() const { return out_d * out_h; }  // of an image
};

void max_pool(const PoolGeometry& g, const float* x, float* y);
void max_pool(const PoolGeometry& g, const double* x, double* y);
// x and y are those of the forward pass. Writes every element of dx.
void max_pool_grad(const PoolGeometry& g, const float* x, const float* y, const float* dy, float* dx);
void max_pool_grad(const PoolGeometry& g, const double* x, const double* y, const double* dy, double* dx);

void average_pool(const PoolGeometry& g, const float* x, float* y);
void average_pool(const PoolGeometry& g, const double* x, double* y);
void average_pool_grad(const PoolGeometry& g, const float* dy, float* dx);
void average_pool_grad(const PoolGeometry& g, const double* dy, double* dx);

}  // namespace syncline::kernels
