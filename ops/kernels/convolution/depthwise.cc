// Depthwise convolution: each channel has its own kernel. Vectors run over channels, sums over taps.
#include <algorithm>
#include <numeric>
#include <type_traits>

#include "ops/kernels/convolution/paths.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/convolution/depthwise.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // includes this file once a target
#include <hwy/highway.h>

#include "ops/kernels/convolution/taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syncline::kernels::conv::depthwise {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace kernels::HWY_NAMESPACE;

// Channels that forward and grad_input compute pixel by pixel, several vectors at once; others in tiles of pixels or
// tap by tap. Beyond the caches memory in order is up to three times as fast. In a core's cache, assumed to hold
// kCached bytes, and with many taps, the loads of factors count, which tiles share.
template <class T>
Index channels_in_order(const ConvGeometry& g) {
  constexpr Index kCached = Index{1} << 20, kMostTaps = 16;
  const Index elements = (g.in_h * g.in_w + g.out_h * g.out_w) * g.in_c * g.batch;
  if (elements * static_cast<Index>(sizeof(T)) <= kCached || g.k_h * g.k_w > kMostTaps) return 0;
  return g.in_c - g.in_c % (kGroup * static_cast<Index>(hn::Lanes(hn::ScalableTag<T>())));
}

// The output columns for which tap b is inside the image.
Range columns_of_tap(const ConvGeometry& g, Index b) {
  const Index offset = b * g.dilation_w - g.pad_left;
  const Index begin = offset >= 0 ? 0 : (-offset + g.stride_w - 1) / g.stride_w;
  const Index end = offset >= g.in_w ? 0 : (g.in_w - 1 - offset) / g.stride_w + 1;
  return {std::min(begin, g.out_w), std::max(std::min(begin, g.out_w), std::min(end, g.out_w))};
}

// Computes kPixels adjacent outputs for kVectors adjacent vectors of channels. x points to tap (0, 0) of the first
// pixel.
template <int kPixels, int kVectors, class D, class T>
HWY_INLINE void output_tile(D d, const ConvGeometry& g, const T* x, const T* w, Range rows, Range columns, T* y) {
  const Index channels = g.in_c, step = g.stride_w * channels, lanes = static_cast<Index>(hn::Lanes(d));
  hn::Vec<D> sum[kPixels * kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kPixels * kVectors; ++i) sum[i] = hn::Zero(d);
  for (Index a = rows.begin; a < rows.end; ++a) {
    for (Index b = columns.begin; b < columns.end; ++b) {
      const T* factors = w + (a * g.k_w + b) * channels;
      const T* tap = x + (a * g.dilation_h * g.in_w + b * g.dilation_w) * channels;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const auto factor = hn::LoadU(d, factors + v * lanes);
#pragma GCC unroll 8
        for (int p = 0; p < kPixels; ++p) {
          auto& s = sum[v * kPixels + p];
          s = hn::MulAdd(hn::LoadU(d, tap + p * step + v * lanes), factor, s);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) hn::StoreU(sum[v * kPixels + p], d, y + p * channels + v * lanes);
  }
}

// Fetches the rows of an image that the next output row reads and the one with the first tap at row `top` does not: the
// part below output pixel j. Loads of several rows and columns at a time are no stream for the processor's prefetcher.
template <class T>
HWY_INLINE void prefetch_next_rows(const ConvGeometry& g, const T* image, Index top, Index j) {
  constexpr Index kLine = 64 / static_cast<Index>(sizeof(T));
  const Index below = top + (g.k_h - 1) * g.dilation_h + 1, line = g.in_w * g.in_c, pixels = g.stride_w * g.in_c;
  const Index first = std::max<Index>(std::max(below, top + g.stride_h), 0),
              last = std::min(below + g.stride_h, g.in_h);
  for (Index row = first; row < last; ++row)
    for (Index at = j * pixels; at < std::min((j + 1) * pixels, line); at += kLine)
      hwy::Prefetch(image + row * line + at);
}

// Computes output rows [begin, end), counted over the batch. A pixel whose neighbours have other taps is computed for
// several vectors of channels at once: sums of one vector would wait for each other.
template <class T>
HWY_INLINE void forward_lines(const ConvGeometry& g, const T* x, const T* w, T* y, Index begin, Index end) {
  constexpr int kPixels = 6;
  const Range inner = interior_columns(g), all{0, g.k_w};
  const Index channels = g.in_c, step = g.stride_w * channels, in_order = channels_in_order<T>(g);
  const Index inner_end = inner.begin + (inner.end - inner.begin) / kPixels * kPixels;
  for (Index line = begin; line < end; ++line) {
    const Index row = line % g.out_h, top = row * g.stride_h - g.pad_top;
    const Range rows = taps_inside(top, g.k_h, g.dilation_h, g.in_h);
    const T* const image = x + line / g.out_h * g.in_h * g.in_w * channels;
    const T* from = image + (top * g.in_w - g.pad_left) * channels;
    T* to = y + line * g.out_w * channels;
    for (Index j = 0; j < g.out_w; ++j) {
      if (j == inner.begin && in_order == 0) j = inner_end;
      if (j == g.out_w) break;
      if (in_order > 0 && row + 1 < g.out_h) prefetch_next_rows(g, image, top, j);
      const bool in_tile = j >= inner.begin && j < inner_end;
      const Range taps = in_tile ? all : taps_inside(j * g.stride_w - g.pad_left, g.k_w, g.dilation_w, g.in_w);
      for_channel_groups<T>(in_tile ? in_order : channels, [&](auto d, auto vectors, Index c) {
        output_tile<1, vectors()>(d, g, from + j * step + c, w + c, rows, taps, to + j * channels + c);
      });
    }
    for_channels<T>(channels - in_order, [&](auto d, Index i) {
      const Index c = in_order + i;
      for (Index j = inner.begin; j < inner_end; j += kPixels)
        output_tile<kPixels, 1>(d, g, from + j * step + c, w + c, rows, all, to + j * channels + c);
    });
  }
}

// Along one axis: between taps that read the same element of x there are `taps` taps, and between their outputs
// `outputs` outputs.
struct Distance {
  Index taps, outputs;
  Distance(Index dilation, Index stride)
      : taps(stride / std::gcd(stride, dilation)), outputs(taps * dilation / stride) {}
};

// The first tap along one axis that reads element at - pad of x, and its output. The next tap has a smaller output.
// There are no further taps from k on, or once the output is negative.
struct Reader : Distance {
  Index tap = 0, output = -1;
  Reader(const Distance& next, Index at, Index k, Index dilation, Index stride, Index size) : Distance(next) {
    if (dilation == 1) tap = at % stride;
    else
      while (tap < taps && (at - tap * dilation) % stride != 0) ++tap;
    if (tap == taps || at < tap * dilation) return;
    output = (at - tap * dilation) / stride;
    for (; output >= size && tap < k; output -= outputs) tap += taps;
  }
};

// Channels [0, channels) of a pixel of dx: the sum over the taps that read it.
template <class T>
HWY_INLINE void grad_input_pixel(const ConvGeometry& g, const T* dy, const T* w, const Reader& row,
                                 const Reader& column, Index channels, T* dx) {
  for_channel_groups<T>(channels, [&](auto d, auto vectors, Index c) {
    constexpr int kVectors = decltype(vectors)::value;
    const auto lanes = static_cast<Index>(hn::Lanes(d));
    hn::Vec<decltype(d)> sum[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[v] = hn::Zero(d);
    for (Index a = row.tap, i = row.output; a < g.k_h && i >= 0; a += row.taps, i -= row.outputs)
      for (Index b = column.tap, k = column.output; b < g.k_w && k >= 0; b += column.taps, k -= column.outputs) {
        const T* const from = dy + (i * g.out_w + k) * g.in_c + c;
        const T* const factors = w + (a * g.k_w + b) * g.in_c + c;
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v)
          sum[v] = hn::MulAdd(hn::LoadU(d, from + v * lanes), hn::LoadU(d, factors + v * lanes), sum[v]);
      }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[v], d, dx + c + v * lanes);
  });
}

// Channels [first, in_c) of a row of dx, which are 0: every tap adds its share of the matching row of dy.
template <class T>
HWY_INLINE void grad_input_taps(const ConvGeometry& g, const T* dy, const T* w, const Reader& row, Index first, T* dx) {
  const Index channels = g.in_c, step = g.stride_w * channels;
  for (Index a = row.tap, i = row.output; a < g.k_h && i >= 0; a += row.taps, i -= row.outputs)
    for (Index b = 0; b < g.k_w; ++b) {
      const Range columns = columns_of_tap(g, b);
      T* const tap = dx + (b * g.dilation_w - g.pad_left) * channels + first;
      for_channels<T>(channels - first, [&](auto d, Index c) {
        const T* const from = dy + i * g.out_w * channels + first + c;
        const auto factor = hn::LoadU(d, w + (a * g.k_w + b) * channels + first + c);
        for (Index j = columns.begin; j < columns.end; ++j) {
          T* const out = tap + j * step + c;
          hn::StoreU(hn::MulAdd(hn::LoadU(d, from + j * channels), factor, hn::LoadU(d, out)), d, out);
        }
      });
    }
}

// Computes rows [begin, end) of dx, counted over the batch, for any stride.
template <class T>
HWY_INLINE void grad_input_lines(const ConvGeometry& g, const T* dy, const T* w, T* dx, Index begin, Index end) {
  const Index channels = g.in_c, in_order = channels_in_order<T>(g);
  const Distance rows(g.dilation_h, g.stride_h), columns(g.dilation_w, g.stride_w);
  for (Index line = begin; line < end; ++line) {
    const Reader row(rows, line % g.in_h + g.pad_top, g.k_h, g.dilation_h, g.stride_h, g.out_h);
    const T* const image = dy + line / g.in_h * g.out_h * g.out_w * channels;
    T* const to = dx + line * g.in_w * channels;
    const bool is_read = row.tap < g.k_h && row.output >= 0;
    if (!is_read || in_order < channels) std::fill(to, to + g.in_w * channels, T(0));
    if (!is_read) continue;
    for (Index j = 0; in_order > 0 && j < g.in_w; ++j) {
      const Reader column(columns, j + g.pad_left, g.k_w, g.dilation_w, g.stride_w, g.out_w);
      grad_input_pixel(g, image, w, row, column, in_order, to + j * channels);
    }
    if (in_order < channels) grad_input_taps(g, image, w, row, in_order, to);
  }
}

// dw[a, b] += sum over columns of x[a, column, b] * dy[column], for kRows kernel rows of kTaps adjacent taps.
template <int kRows, int kTaps, class D, class T>
HWY_INLINE void add_taps(D d, const ConvGeometry& g, const T* x, const T* dy, Range columns, T* dw) {
  const Index channels = g.in_c, step = g.stride_w * channels, between = g.dilation_w * channels;
  const Index line = g.dilation_h * g.in_w * channels;
  hn::Vec<D> sum[kRows * kTaps];
#pragma GCC unroll 4
  for (int a = 0; a < kRows; ++a) {
#pragma GCC unroll 4
    for (int t = 0; t < kTaps; ++t) sum[a * kTaps + t] = hn::LoadU(d, dw + (a * g.k_w + t) * channels);
  }
  for (Index j = columns.begin; j < columns.end; ++j) {
    const auto gradient = hn::LoadU(d, dy + j * channels);
#pragma GCC unroll 4
    for (int a = 0; a < kRows; ++a) {
#pragma GCC unroll 4
      for (int t = 0; t < kTaps; ++t) {
        auto& s = sum[a * kTaps + t];
        s = hn::MulAdd(hn::LoadU(d, x + a * line + j * step + t * between), gradient, s);
      }
    }
  }
#pragma GCC unroll 4
  for (int a = 0; a < kRows; ++a) {
#pragma GCC unroll 4
    for (int t = 0; t < kTaps; ++t) hn::StoreU(sum[a * kTaps + t], d, dw + (a * g.k_w + t) * channels);
  }
}

// As add_taps, for kRows kernel rows with all their taps and all vectors of channels.
template <int kRows, class T>
HWY_INLINE void add_rows(const ConvGeometry& g, const T* x, const T* dy, Range inner, T* dw) {
  const Index channels = g.in_c;
  const auto tap = [&](Index b, Range columns) {
    if (columns.begin >= columns.end) return;
    for_channels<T>(channels, [&](auto d, Index c) {
      add_taps<kRows, 1>(d, g, x + b * g.dilation_w * channels + c, dy + c, columns, dw + b * channels + c);
    });
  };
  Index b = 0;
  for (; b + 3 <= g.k_w && inner.begin < inner.end; b += 3)
    for_channels<T>(channels, [&](auto d, Index c) {
      add_taps<kRows, 3>(d, g, x + b * g.dilation_w * channels + c, dy + c, inner, dw + b * channels + c);
    });
  for (; b < g.k_w; ++b) tap(b, inner);
  for (b = 0; b < g.k_w; ++b) {
    const Range mine = columns_of_tap(g, b);
    tap(b, {mine.begin, std::min(mine.end, inner.begin)});
    tap(b, {std::max(mine.begin, inner.end), mine.end});
  }
}

// Adds the contribution of output rows [begin, end), counted over the batch, to dw.
template <class T>
HWY_INLINE void grad_kernel_lines(const ConvGeometry& g, const T* x, const T* dy, Index begin, Index end, T* dw) {
  const Range inner = interior_columns(g);
  const Index channels = g.in_c;
  for (Index line = begin; line < end; ++line) {
    const Index row = line % g.out_h, top = row * g.stride_h - g.pad_top;
    const Range rows = taps_inside(row * g.stride_h - g.pad_top, g.k_h, g.dilation_h, g.in_h);
    const T* gradient = dy + line * g.out_w * channels;
    const auto from = [&](Index a) {
      return x + ((line / g.out_h * g.in_h + top + a * g.dilation_h) * g.in_w - g.pad_left) * channels;
    };
    Index a = rows.begin;
    for (; a + 3 <= rows.end; a += 3) add_rows<3>(g, from(a), gradient, inner, dw + a * g.k_w * channels);
    for (; a < rows.end; ++a) add_rows<1>(g, from(a), gradient, inner, dw + a * g.k_w * channels);
  }
}

// Highway dispatches functions, not templates.
constexpr auto& forward_float = forward_lines<float>;
constexpr auto& forward_double = forward_lines<double>;
constexpr auto& grad_input_float = grad_input_lines<float>;
constexpr auto& grad_input_double = grad_input_lines<double>;
constexpr auto& grad_kernel_float = grad_kernel_lines<float>;
constexpr auto& grad_kernel_double = grad_kernel_lines<double>;

}  // namespace HWY_NAMESPACE
}  // namespace syncline::kernels::conv::depthwise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncline::kernels {
namespace conv::depthwise {
namespace {

HWY_EXPORT(forward_float);
HWY_EXPORT(forward_double);
HWY_EXPORT(grad_input_float);
HWY_EXPORT(grad_input_double);
HWY_EXPORT(grad_kernel_float);
HWY_EXPORT(grad_kernel_double);

constexpr double kNanosecondsPerProduct = 0.1;

double products(const ConvGeometry& g) {
  return static_cast<double>(g.batch * g.out_h * g.out_w) * static_cast<double>(g.k_h * g.k_w * g.in_c);
}

template <class T>
Index kernel_elements(const ConvGeometry& g) {
  return round_up(g.k_h * g.k_w * g.in_c, 64 / static_cast<Index>(sizeof(T)));
}

template <class T>
Chunks slots_of(const ConvGeometry& g) {
  const double flops = products(g) * kNanosecondsPerProduct / kNanosecondsPerFlop;
  return divide_into_slots(g.batch * g.out_h, flops, kernel_elements<T>(g) * static_cast<Index>(sizeof(T)));
}

template <class T, class Body>
void for_lines(Index lines, Index width, const ConvGeometry& g, const Epilogue* epilogue, const Body& body) {
  if (lines == 0) return;
  parallel_for(lines, products(g) * kNanosecondsPerProduct / static_cast<double>(lines),
               [&](Index begin, Index end) { run_rows(epilogue, begin, end, width * g.in_c, body); });
}

std::size_t no_scratch(const ConvGeometry&) { return 0; }

template <class T>
void forward(const ConvGeometry& g, const T* x, const T* w, T* y, void*, const Epilogue* epilogue) {
  for_lines<T>(g.batch * g.out_h, g.out_w, g, epilogue, [&](Index begin, Index end) {
    if constexpr (std::is_same_v<T, float>) HWY_DYNAMIC_DISPATCH(forward_float)(g, x, w, y, begin, end);
    else HWY_DYNAMIC_DISPATCH(forward_double)(g, x, w, y, begin, end);
  });
}

// With a stride of 1, grad_input is a convolution of dy with the flipped kernel.
bool is_convolution(const ConvGeometry& g) { return g.stride_h == 1 && g.stride_w == 1; }

template <class T>
std::size_t grad_input_scratch_bytes(const ConvGeometry& g) {
  return is_convolution(g) ? static_cast<std::size_t>(kernel_elements<T>(g)) * sizeof(T) : 0;
}

template <class T>
void grad_input(const ConvGeometry& g, const T* dy, const T* w, T* dx, void* scratch, const Epilogue* epilogue) {
  if (is_convolution(g)) {
    T* kernel = static_cast<T*>(scratch);
    const Index taps = g.k_h * g.k_w;
    for (Index tap = 0; tap < taps; ++tap) {
      std::copy(w + (taps - 1 - tap) * g.in_c, w + (taps - tap) * g.in_c, kernel + tap * g.in_c);
    }
    return forward(grad_input_as_forward(g), dy, kernel, dx, nullptr, epilogue);
  }
  for_lines<T>(g.batch * g.in_h, g.in_w, g, epilogue, [&](Index begin, Index end) {
    if constexpr (std::is_same_v<T, float>) HWY_DYNAMIC_DISPATCH(grad_input_float)(g, dy, w, dx, begin, end);
    else HWY_DYNAMIC_DISPATCH(grad_input_double)(g, dy, w, dx, begin, end);
  });
}

template <class T>
std::size_t grad_kernel_scratch_bytes(const ConvGeometry& g) {
  return static_cast<std::size_t>(std::max<Index>(1, slots_of<T>(g).count) * kernel_elements<T>(g)) * sizeof(T);
}

template <class T>
void grad_kernel(const ConvGeometry& g, const T* x, const T* dy, T* dw, void* scratch) {
  const Chunks slots = slots_of<T>(g);
  const Index stride = kernel_elements<T>(g);
  T* partials = static_cast<T*>(scratch);
  std::fill(partials, partials + std::max<Index>(1, slots.count) * stride, T(0));
  parallel_chunks(slots, [&](Index slot, Index begin, Index end) {
    T* part = partials + slot * stride;
    if constexpr (std::is_same_v<T, float>) HWY_DYNAMIC_DISPATCH(grad_kernel_float)(g, x, dy, begin, end, part);
    else HWY_DYNAMIC_DISPATCH(grad_kernel_double)(g, x, dy, begin, end, part);
  });
  if (slots.count > 1) add_partials(partials, slots.count, stride, partials);
  std::copy(partials, partials + g.k_h * g.k_w * g.in_c, dw);
}

double flops(const ConvGeometry& g) { return 2 * products(g); }

template <class T>
constexpr ConvLoops<T> kLoops{.forward_scratch_bytes = &no_scratch,
                              .forward = &forward<T>,
                              .grad_input_scratch_bytes = &grad_input_scratch_bytes<T>,
                              .grad_input = &grad_input<T>,
                              .grad_kernel_scratch_bytes = &grad_kernel_scratch_bytes<T>,
                              .grad_kernel = &grad_kernel<T>,
                              .forward_flops = &flops,
                              .grad_input_flops = &flops,
                              .grad_kernel_flops = &flops};

}  // namespace
}  // namespace conv::depthwise

template <>
const ConvLoops<float>& depthwise_conv<float>() {
  return conv::depthwise::kLoops<float>;
}
template <>
const ConvLoops<double>& depthwise_conv<double>() {
  return conv::depthwise::kLoops<double>;
}

}  // namespace syncline::kernels
#endif
