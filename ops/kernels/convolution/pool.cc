// Pooling, one window at a time, vectorized over channels.
#include "ops/kernels/convolution/pool.h"

#include <algorithm>
#include <limits>

#include "ops/kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/convolution/pool.cc"
#include <hwy/foreach_target.h>  // includes this file once a target
#include <hwy/highway.h>

#include "ops/kernels/convolution/taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syncline::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Index = std::int64_t;

// The cells of one window inside the image: [front, back) x [top, bottom) x [left, right).
struct Window {
  Index front, back, top, bottom, left, right;
  Window(const PoolGeometry& g, Index plane, Index row, Index column) {
    const Index z = plane * g.stride_d - g.pad_front, y = row * g.stride_h - g.pad_top;
    const Index x = column * g.stride_w - g.pad_left;
    front = std::max<Index>(z, 0);
    back = std::min(z + g.k_d, g.in_d);
    top = std::max<Index>(y, 0);
    bottom = std::min(y + g.k_h, g.in_h);
    left = std::max<Index>(x, 0);
    right = std::min(x + g.k_w, g.in_w);
  }
  Index cells() const {
    return std::max<Index>(0, back - front) * std::max<Index>(0, bottom - top) * std::max<Index>(0, right - left);
  }
};

// Calls visit(offset) for each cell inside the image, in row order; `offset` is the offset of its channel 0 in the
// image.
template <class Visit>
HWY_INLINE void for_cells(const PoolGeometry& g, const Window& w, const Visit& visit) {
  for (Index e = w.front; e < w.back; ++e) {
    for (Index i = w.top; i < w.bottom; ++i) {
      for (Index j = w.left; j < w.right; ++j) visit(((e * g.in_h + i) * g.in_w + j) * g.channels);
    }
  }
}

// Calls visit(window, image, out) for each output pixel of output lines [begin, end), counted over the batch. `image`:
// offset of the input image; `out`: offset of the output pixel.
template <class Visit>
HWY_INLINE void for_windows(const PoolGeometry& g, Index begin, Index end, const Visit& visit) {
  Index out = begin * g.out_w * g.channels;
  for (Index line = begin; line < end; ++line) {
    const Index plane = line / g.out_h, depth = plane % g.out_d, row = line % g.out_h;
    const Index image = plane / g.out_d * g.in_d * g.in_h * g.in_w * g.channels;
    for (Index j = 0; j < g.out_w; ++j, out += g.channels) visit(Window(g, depth, row, j), image, out);
  }
}

// The loops over windows go through a window's cells with several vectors of adjacent channels at once: they then read
// and write a cell's memory in order, as the processor's prefetcher expects.
template <class T>
HWY_INLINE void max_lines(const PoolGeometry& g, const T* x, T* y, Index begin, Index end) {
  for_windows(g, begin, end, [&](const Window& window, Index image, Index out) {
    for_channel_groups<T>(g.channels, [&](auto d, auto vectors, Index c) {
      constexpr int kVectors = decltype(vectors)::value;
      const auto lanes = static_cast<Index>(hn::Lanes(d));
      hn::Vec<decltype(d)> best[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) best[v] = hn::Set(d, -std::numeric_limits<T>::infinity());
      for_cells(g, window, [&](Index cell) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          const auto value = hn::LoadU(d, x + image + cell + c + v * lanes);
          best[v] = hn::IfThenElse(hn::Or(hn::Gt(value, best[v]), hn::IsNaN(value)), value, best[v]);
        }
      });
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) hn::StoreU(best[v], d, y + out + c + v * lanes);
    });
  });
}

// As for_windows, for images [begin, end). Clears each image of dx before its windows, so that they find it in the
// cache.
template <class T, class Visit>
HWY_INLINE void for_cleared_images(const PoolGeometry& g, T* dx, Index begin, Index end, const Visit& visit) {
  const Index size = g.in_d * g.in_h * g.in_w * g.channels;
  for (Index n = begin; n < end; ++n) {
    std::fill_n(dx + n * size, size, T(0));
    for_windows(g, n * g.out_lines(), (n + 1) * g.out_lines(), visit);
  }
}

template <class T>
HWY_INLINE void max_grad_images(const PoolGeometry& g, const T* x, const T* y, const T* dy, T* dx, Index begin,
                                Index end) {
  for_cleared_images(g, dx, begin, end, [&](const Window& window, Index image, Index out) {
    for_channel_groups<T>(g.channels, [&](auto d, auto vectors, Index c) {
      constexpr int kVectors = decltype(vectors)::value;
      const auto lanes = static_cast<Index>(hn::Lanes(d));
      hn::Vec<decltype(d)> best[kVectors], left[kVectors];  // left: gradient not yet assigned to a cell
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        best[v] = hn::LoadU(d, y + out + c + v * lanes);
        left[v] = hn::LoadU(d, dy + out + c + v * lanes);
      }
      for_cells(g, window, [&](Index cell) {
        T* const to = dx + image + cell + c;
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          const auto here = hn::Eq(hn::LoadU(d, x + image + cell + c + v * lanes), best[v]);
          const auto sum = hn::Add(hn::LoadU(d, to + v * lanes), hn::IfThenElseZero(here, left[v]));
          hn::StoreU(sum, d, to + v * lanes);
          left[v] = hn::IfThenZeroElse(here, left[v]);
        }
      });
    });
  });
}

// For 2x2 windows that tile the image without overlap or pads: output line i of the batch covers input lines 2 i and
// 2 i + 1. Writes each element of dx once.
template <class T>
HWY_INLINE void max_grad_quads(const PoolGeometry& g, const T* x, const T* y, const T* dy, T* dx, Index begin,
                               Index end) {
  const Index channels = g.channels, width = g.out_w, line = g.in_w * channels;
  for (Index i = begin * g.out_h; i < end * g.out_h; ++i) {
    for (Index j = 0; j < width; ++j) {
      const Index corner = 2 * (i * line + j * channels), out = (i * width + j) * channels;
      for_channels<T>(channels, [&](auto d, Index c) {
        const auto best = hn::LoadU(d, y + out + c);
        auto left = hn::LoadU(d, dy + out + c);
        const auto take = [&](Index cell) {
          const auto here = hn::Eq(hn::LoadU(d, x + cell + c), best);
          hn::StoreU(hn::IfThenElseZero(here, left), d, dx + cell + c);
          left = hn::IfThenZeroElse(here, left);
        };
        take(corner);
        take(corner + channels);
        take(corner + line);
        take(corner + line + channels);
      });
    }
  }
}

template <class T>
HWY_INLINE void max_grad_any(const PoolGeometry& g, const T* x, const T* y, const T* dy, T* dx, Index begin,
                             Index end) {
  const bool flat = g.k_d == 1 && g.in_d == 1 && g.out_d == 1;
  const bool quads = flat && g.k_h == 2 && g.k_w == 2 && g.stride_h == 2 && g.stride_w == 2 && g.pad_top == 0 &&
                     g.pad_left == 0 && g.in_h == 2 * g.out_h && g.in_w == 2 * g.out_w;
  if (quads) max_grad_quads(g, x, y, dy, dx, begin, end);
  else max_grad_images(g, x, y, dy, dx, begin, end);
}

template <class T>
HWY_INLINE void average_lines(const PoolGeometry& g, const T* x, T* y, Index begin, Index end) {
  for_windows(g, begin, end, [&](const Window& window, Index image, Index out) {
    const T share = T(1) / static_cast<T>(std::max<Index>(1, window.cells()));
    for_channel_groups<T>(g.channels, [&](auto d, auto vectors, Index c) {
      constexpr int kVectors = decltype(vectors)::value;
      const auto lanes = static_cast<Index>(hn::Lanes(d));
      hn::Vec<decltype(d)> sum[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[v] = hn::Zero(d);
      for_cells(g, window, [&](Index cell) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sum[v] = hn::Add(sum[v], hn::LoadU(d, x + image + cell + c + v * lanes));
      });
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) hn::StoreU(hn::Mul(sum[v], hn::Set(d, share)), d, y + out + c + v * lanes);
    });
  });
}

template <class T>
HWY_INLINE void average_grad_images(const PoolGeometry& g, const T* dy, T* dx, Index begin, Index end) {
  for_cleared_images(g, dx, begin, end, [&](const Window& window, Index image, Index out) {
    const T share = T(1) / static_cast<T>(std::max<Index>(1, window.cells()));
    for_channel_groups<T>(g.channels, [&](auto d, auto vectors, Index c) {
      constexpr int kVectors = decltype(vectors)::value;
      const auto lanes = static_cast<Index>(hn::Lanes(d));
      hn::Vec<decltype(d)> part[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) part[v] = hn::Mul(hn::LoadU(d, dy + out + c + v * lanes), hn::Set(d, share));
      for_cells(g, window, [&](Index cell) {
        T* const to = dx + image + cell + c;
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v)
          hn::StoreU(hn::Add(hn::LoadU(d, to + v * lanes), part[v]), d, to + v * lanes);
      });
    });
  });
}

// Highway dispatches functions, not templates.
constexpr auto& max_float = max_lines<float>;
constexpr auto& max_double = max_lines<double>;
constexpr auto& max_grad_float = max_grad_any<float>;
constexpr auto& max_grad_double = max_grad_any<double>;
constexpr auto& average_float = average_lines<float>;
constexpr auto& average_double = average_lines<double>;
constexpr auto& average_grad_float = average_grad_images<float>;
constexpr auto& average_grad_double = average_grad_images<double>;

}  // namespace HWY_NAMESPACE
}  // namespace syncline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncline::kernels {
namespace {

using Index = std::int64_t;

HWY_EXPORT(max_float);
HWY_EXPORT(max_double);
HWY_EXPORT(max_grad_float);
HWY_EXPORT(max_grad_double);
HWY_EXPORT(average_float);
HWY_EXPORT(average_double);
HWY_EXPORT(average_grad_float);
HWY_EXPORT(average_grad_double);

// A cell costs about half a nanosecond of memory traffic.
double image_cost(const PoolGeometry& g) {
  const Index cells = std::max(g.out_d * g.out_h * g.out_w * g.k_d * g.k_h * g.k_w, g.in_d * g.in_h * g.in_w);
  return 0.5 * static_cast<double>(cells * g.channels);
}

template <class Body>
void for_lines(const PoolGeometry& g, const Body& body) {
  const Index lines = g.out_lines();
  if (lines > 0) parallel_for(g.batch * lines, image_cost(g) / static_cast<double>(lines), body);
}

// Windows may overlap in dx.
template <class Body>
void for_images(const PoolGeometry& g, const Body& body) {
  parallel_for(g.batch, image_cost(g), body);
}

}  // namespace

void max_pool(const PoolGeometry& g, const float* x, float* y) {
  for_lines(g, [&](Index begin, Index end) { HWY_DYNAMIC_DISPATCH(max_float)(g, x, y, begin, end); });
}
void max_pool(const PoolGeometry& g, const double* x, double* y) {
  for_lines(g, [&](Index begin, Index end) { HWY_DYNAMIC_DISPATCH(max_double)(g, x, y, begin, end); });
}

void max_pool_grad(const PoolGeometry& g, const float* x, const float* y, const float* dy, float* dx) {
  for_images(g, [&](Index begin, Index end) { HWY_DYNAMIC_DISPATCH(max_grad_float)(g, x, y, dy, dx, begin, end); });
}
void max_pool_grad(const PoolGeometry& g, const double* x, const double* y, const double* dy, double* dx) {
  for_images(g, [&](Index begin, Index end) { HWY_DYNAMIC_DISPATCH(max_grad_double)(g, x, y, dy, dx, begin, end); });
}

void average_pool(const PoolGeometry& g, const float* x, float* y) {
  for_lines(g, [&](Index begin, Index end) { HWY_DYNAMIC_DISPATCH(average_float)(g, x, y, begin, end); });
}
void average_pool(const PoolGeometry& g, const double* x, double* y) {
  for_lines(g, [&](Index begin, Index end) { HWY_DYNAMIC_DISPATCH(average_double)(g, x, y, begin, end); });
}

void average_pool_grad(const PoolGeometry& g, const float* dy, float* dx) {
  for_images(g, [&](Index begin, Index end) { HWY_DYNAMIC_DISPATCH(average_grad_float)(g, dy, dx, begin, end); });
}
void average_pool_grad(const PoolGeometry& g, const double* dy, double* dx) {
  for_images(g, [&](Index begin, Index end) { HWY_DYNAMIC_DISPATCH(average_grad_double)(g, dy, dx, begin, end); });
}

}  // namespace syncline::kernels
#endif
