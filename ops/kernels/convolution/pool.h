// Max and average pooling over NDHWC images, and their gradients. Images of fewer axes have a depth of 1.
//
// Cells outside the image take no part: the average divides by the number of real cells, as TensorFlow does. A window
// without real cells gives negative infinity (max) or 0 (average); one with NaN gives NaN. The gradient of the maximum
// goes to the first cell, row by row, that holds it. Kernels check nothing and allocate nothing; float and double; bits
// do not depend on the number of threads. Thread-safe where outputs are not shared.
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
};

template <class T>
void max_pool(const PoolGeometry& g, const T* x, T* y);
// x and y are the forward pass's. Every element of dx is written.
template <class T>
void max_pool_grad(const PoolGeometry& g, const T* x, const T* y, const T* dy, T* dx);

template <class T>
void average_pool(const PoolGeometry& g, const T* x, T* y);
template <class T>
void average_pool_grad(const PoolGeometry& g, const T* dy, T* dx);

// Each exists for float and double alone.
template <>
void max_pool(const PoolGeometry& g, const float* x, float* y);
template <>
void max_pool(const PoolGeometry& g, const double* x, double* y);
template <>
void max_pool_grad(const PoolGeometry& g, const float* x, const float* y, const float* dy, float* dx);
template <>
void max_pool_grad(const PoolGeometry& g, const double* x, const double* y, const double* dy, double* dx);
template <>
void average_pool(const PoolGeometry& g, const float* x, float* y);
template <>
void average_pool(const PoolGeometry& g, const double* x, double* y);
template <>
void average_pool_grad(const PoolGeometry& g, const float* dy, float* dx);
template <>
void average_pool_grad(const PoolGeometry& g, const double* dy, double* dx);

}  // namespace syncline::kernels
