// Direct convolution of images with few channels. The inner dimension of the products is too short for a matrix
// product, so pixels and output channels are kept in registers.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "ops/kernels/convolution/paths.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/convolution/direct.cc"
#include <hwy/foreach_target.h>  // includes this file once a target
#include <hwy/highway.h>

#include "ops/kernels/convolution/taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syncline::kernels::conv::direct {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace kernels::HWY_NAMESPACE;

// Calls visit(d, vectors, k) for groups of channels: two vectors, one vector, then narrower vectors for the rest.
template <class Visit>
HWY_INLINE void for_channel_vectors(Index channels, const Visit& visit) {
  const hn::ScalableTag<float> wide;
  const hn::CappedTag<float, 4> narrow;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<Index>(hn::Lanes(wide)), few = static_cast<Index>(hn::Lanes(narrow));
  Index k = 0;
  for (; k + 2 * lanes <= channels; k += 2 * lanes) visit(wide, std::integral_constant<int, 2>(), k);
  for (; k + lanes <= channels; k += lanes) visit(wide, std::integral_constant<int, 1>(), k);
  for (; k + few <= channels; k += few) visit(narrow, std::integral_constant<int, 1>(), k);
  for (; k < channels; ++k) visit(one, std::integral_constant<int, 1>(), k);
}

// A line of output pixels, counted over the batch: the kernel planes and rows inside the image, and the pixel at tap
// (0, 0, 0) of column 0, which may be outside.
struct OutputLine {
  Range planes, rows;
  Index pixel;

  HWY_INLINE OutputLine(const ConvGeometry& g, Index line) {
    const Index plane = line / g.out_h, image = g.out_d == 1 ? plane : plane / g.out_d;
    const Index front = (plane - image * g.out_d) * g.stride_d - g.pad_front;
    const Index top = (line - plane * g.out_h) * g.stride_h - g.pad_top;
    planes = g.is_flat() ? Range{0, 1} : taps_inside(front, g.k_d, g.dilation_d, g.in_d);
    rows = taps_inside(top, g.k_h, g.dilation_h, g.in_h);
    pixel = ((image * g.in_d + front) * g.in_h + top) * g.in_w - g.pad_left;
  }
};

// The taps of an output that are inside the image. `planes`, `rows` and `runs` are counts; a run is `run` floats that
// are adjacent in x, and their weights in w. `x` and `w` are the offsets of the first tap. The gaps are the distances
// from the end of a run, row or plane of taps to the next one.
struct Taps {
  Index planes, rows, runs, run;
  Index x, x_gap, x_row_gap, x_plane_gap;
  Index w, w_row_gap, w_plane_gap;

  HWY_INLINE Taps(const ConvGeometry& g, const OutputLine& line, Range columns) {
    const Index count = columns.end - columns.begin;
    const Index x_row = g.dilation_h * g.in_w * g.in_c, x_plane = g.dilation_d * g.in_h * g.in_w * g.in_c;
    const Index w_column = g.in_c * g.out_c, w_row = g.k_w * w_column, w_plane = g.k_h * w_row;
    planes = line.planes.end - line.planes.begin;
    rows = line.rows.end - line.rows.begin;
    const bool joined = g.dilation_w == 1;
    runs = joined ? 1 : count;
    run = joined ? count * g.in_c : g.in_c;
    x_gap = (g.dilation_w - 1) * g.in_c;
    x_row_gap = x_row - runs * (run + x_gap);
    x_plane_gap = x_plane - rows * x_row;
    w_row_gap = w_row - count * w_column;
    w_plane_gap = w_plane - rows * w_row;
    x = line.planes.begin * x_plane + line.rows.begin * x_row + columns.begin * g.dilation_w * g.in_c;
    w = line.planes.begin * w_plane + line.rows.begin * w_row + columns.begin * w_column;
  }
};

// Computes kPixels adjacent outputs of kVectors vectors of channels. x points to tap (0, 0, 0), channel 0 of the first
// pixel; w and y point to the first channel. `step` is the distance in x between the first taps of adjacent outputs.
template <int kPixels, int kVectors, class D>
HWY_INLINE void output_pixels(D d, const Taps taps, Index channels, Index step, const float* x, const float* w,
                              float* y) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  V sum[kPixels][kVectors];
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[p][v] = hn::Zero(d);
  }
  const float *tap = x + taps.x, *weight = w + taps.w;
  for (Index e = taps.planes; e > 0; --e, tap += taps.x_plane_gap, weight += taps.w_plane_gap)
    for (Index a = taps.rows; a > 0; --a, tap += taps.x_row_gap, weight += taps.w_row_gap)
      for (Index r = taps.runs; r > 0; --r, tap += taps.x_gap)
        for (Index c = taps.run; c > 0; --c, ++tap, weight += channels) {
          const float* pixel = tap;
          V factor[kVectors];
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) factor[v] = hn::LoadU(d, weight + v * lanes);
#pragma GCC unroll 8
          for (int p = 0; p < kPixels; ++p) {
            const V value = hn::Set(d, *pixel);
            pixel += step;
#pragma GCC unroll 2
            for (int v = 0; v < kVectors; ++v) sum[p][v] = hn::MulAdd(value, factor[v], sum[p][v]);
          }
        }
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[p][v], d, y + p * channels + v * lanes);
  }
}

// Computes kVectors vectors of channels of a line of outputs. x points to the pixel at tap (0, 0, 0) of column 0; w and
// y point to the first channel.
template <int kVectors, class D>
HWY_INLINE void output_line(D d, const ConvGeometry& g, const OutputLine& line, const Taps& all, Range inner,
                            const float* x, const float* w, float* y) {
  const Index channels = g.out_c, step = g.stride_w * g.in_c;
  const auto border = [&](Index j) {
    const Range columns = taps_inside(j * g.stride_w - g.pad_left, g.k_w, g.dilation_w, g.in_w);
    output_pixels<1, kVectors>(d, Taps(g, line, columns), channels, step, x + j * step, w, y + j * channels);
  };
  for (Index j = 0; j < inner.begin; ++j) border(j);
  Index j = inner.begin;
  const auto group = [&](auto pixels) {
    constexpr int kCount = decltype(pixels)::value;
    output_pixels<kCount, kVectors>(d, all, channels, step, x + j * step, w, y + j * channels);
    j += kCount;
  };
  while (inner.end - j >= 6) group(std::integral_constant<int, 6>());
  if (inner.end - j >= 4) group(std::integral_constant<int, 4>());
  if (inner.end - j >= 2) group(std::integral_constant<int, 2>());
  if (inner.end - j >= 1) group(std::integral_constant<int, 1>());
  for (; j < g.out_w; ++j) border(j);
}

// Computes output lines [begin, end), counted over the batch.
void forward_lines(const ConvGeometry& g, const float* x, const float* w, float* y, Index begin, Index end) {
  if (begin == end) return;
  const Range inner = interior_columns(g), columns{0, g.k_w};
  OutputLine line(g, begin);
  Taps all(g, line, columns);
  for (Index number = begin; number < end; ++number) {
    const OutputLine before = std::exchange(line, OutputLine(g, number));
    if (line.planes != before.planes || line.rows != before.rows) all = Taps(g, line, columns);
    for_channel_vectors(g.out_c, [&](auto d, auto vectors, Index k) {
      output_line<decltype(vectors)::value>(d, g, line, all, inner, x + line.pixel * g.in_c, w + k,
                                            y + number * g.out_w * g.out_c + k);
    });
  }
}

// dw[tap] += sum over columns of x[column, tap] * dy[column], for kTaps taps of one kernel row at a time.
template <int kTaps, int kVectors, class D>
HWY_INLINE void add_taps(D d, const float* x, const Index* offsets, Index step, const float* dy, Index channels,
                         Range columns, float* dw) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  V sum[kTaps][kVectors];
#pragma GCC unroll 9
  for (int t = 0; t < kTaps; ++t) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[t][v] = hn::LoadU(d, dw + t * channels + v * lanes);
  }
  for (Index j = columns.begin; j < columns.end; ++j) {
    V gradient[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) gradient[v] = hn::LoadU(d, dy + j * channels + v * lanes);
#pragma GCC unroll 9
    for (int t = 0; t < kTaps; ++t) {
      const V value = hn::Set(d, x[j * step + offsets[t]]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[t][v] = hn::MulAdd(value, gradient[v], sum[t][v]);
    }
  }
#pragma GCC unroll 9
  for (int t = 0; t < kTaps; ++t) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[t][v], d, dw + t * channels + v * lanes);
  }
}

// Adds the taps [taps.begin, taps.end) of one kernel row, counted over columns and channels, for the given output
// columns.
template <int kVectors, class D>
HWY_INLINE void add_kernel_row(D d, const ConvGeometry& g, const float* x, const float* dy, Range columns, Range taps,
                               float* dw) {
  if (taps.begin >= taps.end) return;
  constexpr int kMost = kVectors == 1 ? 9 : 5;  // taps whose sums are in registers
  const Index step = g.stride_w * g.in_c;
  Index offset = taps.begin / g.in_c * g.dilation_w * g.in_c, channel = 0;  // of the next tap
  for (Index t = taps.begin; t < taps.end;) {
    Index offsets[kMost];
    const Index left = taps.end - t, group = left >= kMost ? kMost : std::min<Index>(left, 4);
    for (Index i = 0; i < group; ++i) {
      offsets[i] = offset++;
      if (++channel < g.in_c) continue;
      channel = 0;
      offset += (g.dilation_w - 1) * g.in_c;
    }
    float* to = dw + t * g.out_c;
    const auto add = [&](auto count) {
      add_taps<decltype(count)::value, kVectors>(d, x, offsets, step, dy, g.out_c, columns, to);
      t += decltype(count)::value;
    };
    if (group == kMost) add(std::integral_constant<int, kMost>());
    else if (group == 4) add(std::integral_constant<int, 4>());
    else if (group == 3) add(std::integral_constant<int, 3>());
    else if (group == 2) add(std::integral_constant<int, 2>());
    else add(std::integral_constant<int, 1>());
  }
}

// Adds the contribution of one kernel row to a line of output pixels. x points to its first tap at column 0.
HWY_INLINE void add_line(const ConvGeometry& g, const float* x, const float* dy, Range inner, float* dw) {
  const Index width = g.k_w * g.in_c;
  for_channel_vectors(g.out_c, [&](auto d, auto vectors, Index k) {
    constexpr int kVectors = decltype(vectors)::value;
    const auto border = [&](Index j) {
      const Range taps = taps_inside(j * g.stride_w - g.pad_left, g.k_w, g.dilation_w, g.in_w);
      const Range flat{taps.begin * g.in_c, taps.end * g.in_c};
      add_kernel_row<kVectors>(d, g, x, dy + k, {j, j + 1}, flat, dw + k);
    };
    for (Index j = 0; j < inner.begin; ++j) border(j);
    add_kernel_row<kVectors>(d, g, x, dy + k, inner, {0, width}, dw + k);
    for (Index j = inner.end; j < g.out_w; ++j) border(j);
  });
}

// Adds the contribution of output lines [begin, end), counted over the batch, to dw.
void grad_kernel_lines(const ConvGeometry& g, const float* x, const float* dy, Index begin, Index end, float* dw) {
  const Range inner = interior_columns(g);
  for (Index number = begin; number < end; ++number) {
    const OutputLine line(g, number);
    const float* gradient = dy + number * g.out_w * g.out_c;
    for (Index e = line.planes.begin; e < line.planes.end; ++e)
      for (Index a = line.rows.begin; a < line.rows.end; ++a) {
        const Index pixel = line.pixel + (e * g.dilation_d * g.in_h + a * g.dilation_h) * g.in_w;
        add_line(g, x + pixel * g.in_c, gradient, inner, dw + (e * g.k_h + a) * g.k_w * g.in_c * g.out_c);
      }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace syncline::kernels::conv::direct
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncline::kernels::conv::direct {
namespace {

HWY_EXPORT(forward_lines);
HWY_EXPORT(grad_kernel_lines);

constexpr Index kMaxInputChannels = 4;
constexpr Index kMinOutputChannels = 8;
constexpr double kNanosecondsPerFlopHere = 0.02;

Index kernel_size(const ConvGeometry& g) { return g.k_d * g.k_h * g.k_w * g.in_c * g.out_c; }
Index lines_of(const ConvGeometry& g) { return g.batch * g.out_d * g.out_h; }
Index partial_floats(const ConvGeometry& g) { return round_up(kernel_size(g), 16); }

Chunks slots_of(const ConvGeometry& g) {
  return divide_into_slots(lines_of(g), 2 * flops(g), partial_floats(g) * static_cast<Index>(sizeof(float)));
}

}  // namespace

bool fits(const ConvGeometry& g) { return g.in_c <= kMaxInputChannels && g.out_c >= kMinOutputChannels; }

void forward(const ConvGeometry& g, const float* x, const float* w, float* y, const Epilogue* epilogue) {
  const Index lines = lines_of(g);
  if (lines == 0) return;
  parallel_for(lines, flops(g) * kNanosecondsPerFlopHere / static_cast<double>(lines), [&](Index begin, Index end) {
    run_rows(epilogue, begin, end, g.out_w * g.out_c, [&](Index first, Index last) {
      HWY_DYNAMIC_DISPATCH(forward_lines)(g, x, w, y, first, last);
    });
  });
}

std::size_t grad_kernel_scratch_bytes(const ConvGeometry& g) {
  return static_cast<std::size_t>(std::max<Index>(1, slots_of(g).count) * partial_floats(g)) * sizeof(float);
}

void grad_kernel(const ConvGeometry& g, const float* x, const float* dy, float* dw, void* scratch) {
  const Chunks slots = slots_of(g);
  const Index size = kernel_size(g), stride = partial_floats(g);
  auto* partials = static_cast<float*>(scratch);
  std::fill(partials, partials + std::max<Index>(1, slots.count) * stride, 0.0f);
  parallel_chunks(slots, [&](Index slot, Index begin, Index end) {
    HWY_DYNAMIC_DISPATCH(grad_kernel_lines)(g, x, dy, begin, end, partials + slot * stride);
  });
  if (slots.count > 1) add_partials(partials, slots.count, stride, partials);
  std::copy(partials, partials + size, dw);
}

}  // namespace syncline::kernels::conv::direct
#endif
