#include "ops/kernels/convolution/winograd_transforms.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/convolution/winograd_transforms.cc"
#include <hwy/foreach_target.h>  // includes this file once a target
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace syncline::kernels::winograd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Index = std::int64_t;
using Full = hn::ScalableTag<float>;
using One = hn::CappedTag<float, 1>;

// The one-dimensional transforms: kIn values to kOut values, at the points 0, 1, -1, 2, -2 and infinity.
struct InputTransform {  // B^T
  static constexpr int kIn = 6, kOut = 6;
  template <class D, class V>
  static HWY_INLINE void apply(D d, const V* in, V* out) {
    const V two = hn::Set(d, 2.0f), four = hn::Set(d, 4.0f), five = hn::Set(d, 5.0f);
    const V even = hn::NegMulAdd(four, in[2], in[4]), odd = hn::NegMulAdd(four, in[1], in[3]);
    const V even2 = hn::Sub(in[4], in[2]), odd2 = hn::Sub(in[3], in[1]);
    out[0] = hn::MulAdd(four, in[0], hn::NegMulAdd(five, in[2], in[4]));
    out[1] = hn::Add(even, odd);
    out[2] = hn::Sub(even, odd);
    out[3] = hn::MulAdd(two, odd2, even2);
    out[4] = hn::NegMulAdd(two, odd2, even2);
    out[5] = hn::MulAdd(four, in[1], hn::NegMulAdd(five, in[3], in[5]));
  }
};

struct OutputTransform {  // A^T
  static constexpr int kIn = 6, kOut = 4;
  template <class D, class V>
  static HWY_INLINE void apply(D d, const V* in, V* out) {
    const V even = hn::Add(in[1], in[2]), odd = hn::Sub(in[1], in[2]);
    const V even2 = hn::Add(in[3], in[4]), odd2 = hn::Sub(in[3], in[4]);
    out[0] = hn::Add(in[0], hn::Add(even, even2));
    out[1] = hn::MulAdd(hn::Set(d, 2.0f), odd2, odd);
    out[2] = hn::MulAdd(hn::Set(d, 4.0f), even2, even);
    out[3] = hn::Add(in[5], hn::MulAdd(hn::Set(d, 8.0f), odd2, odd));
  }
};

struct GradientTransform {  // A
  static constexpr int kIn = 4, kOut = 6;
  template <class D, class V>
  static HWY_INLINE void apply(D d, const V* in, V* out) {
    const V even = hn::Add(in[0], in[2]), odd = hn::Add(in[1], in[3]);
    const V even2 = hn::MulAdd(hn::Set(d, 4.0f), in[2], in[0]);
    const V two = hn::Set(d, 2.0f), odd2 = hn::MulAdd(hn::Set(d, 4.0f), in[3], in[1]);
    out[0] = in[0];
    out[1] = hn::Add(even, odd);
    out[2] = hn::Sub(even, odd);
    out[3] = hn::MulAdd(two, odd2, even2);
    out[4] = hn::NegMulAdd(two, odd2, even2);
    out[5] = in[3];
  }
};

struct KernelTransform {  // G
  static constexpr int kIn = 3, kOut = 6;
  template <class D, class V>
  static HWY_INLINE void apply(D d, const V* in, V* out) {
    const V sixth = hn::Set(d, 1.0f / 6), twelfth = hn::Set(d, 1.0f / 12), part = hn::Set(d, 1.0f / 24);
    const V even = hn::Mul(sixth, hn::Add(in[0], in[2])), odd = hn::Mul(sixth, in[1]);
    const V even2 = hn::MulAdd(part, in[0], hn::Mul(sixth, in[2])), odd2 = hn::Mul(twelfth, in[1]);
    out[0] = hn::Mul(hn::Set(d, 0.25f), in[0]);
    out[1] = hn::Neg(hn::Add(even, odd));
    out[2] = hn::Sub(odd, even);
    out[3] = hn::Add(even2, odd2);
    out[4] = hn::Sub(even2, odd2);
    out[5] = in[2];
  }
};

struct KernelGradientTransform {  // G^T
  static constexpr int kIn = 6, kOut = 3;
  template <class D, class V>
  static HWY_INLINE void apply(D d, const V* in, V* out) {
    const V sixth = hn::Set(d, 1.0f / 6), twelfth = hn::Set(d, 1.0f / 12), part = hn::Set(d, 1.0f / 24);
    const V even = hn::Add(in[1], in[2]), odd = hn::Sub(in[2], in[1]);
    const V even2 = hn::Add(in[3], in[4]), odd2 = hn::Sub(in[3], in[4]);
    out[0] = hn::MulAdd(hn::Set(d, 0.25f), in[0], hn::NegMulAdd(sixth, even, hn::Mul(part, even2)));
    out[1] = hn::MulAdd(sixth, odd, hn::Mul(twelfth, odd2));
    out[2] = hn::MulAdd(sixth, hn::Sub(even2, even), in[5]);
  }
};

// Transforms columns, then rows, for one vector of channels. Element (i, j) is at i * row + j * column.
template <class Transform, class D>
HWY_INLINE void transform_square(D d, const float* HWY_RESTRICT from, Index from_row, Index from_column,
                                 float* HWY_RESTRICT to, Index to_row, Index to_column) {
  constexpr int kIn = Transform::kIn, kOut = Transform::kOut;
  using V = hn::Vec<D>;
  V half[kOut][kIn];
#pragma GCC unroll 6
  for (int j = 0; j < kIn; ++j) {
    V in[kIn], out[kOut];
#pragma GCC unroll 6
    for (int i = 0; i < kIn; ++i) in[i] = hn::LoadU(d, from + i * from_row + j * from_column);
    Transform::apply(d, in, out);
#pragma GCC unroll 6
    for (int i = 0; i < kOut; ++i) half[i][j] = out[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < kOut; ++i) {
    V out[kOut];
    Transform::apply(d, half[i], out);
#pragma GCC unroll 6
    for (int j = 0; j < kOut; ++j) hn::StoreU(out[j], d, to + i * to_row + j * to_column);
  }
}

// The position of the patch of a tile.
struct Position {
  Index image, y, x;
  Position(const Tiling& t, Index tile)
      : image(tile / (t.rows * t.columns)),
        y(tile / t.columns % t.rows * kTile + t.origin_y),
        x(tile % t.columns * kTile + t.origin_x) {}
  bool inside(const Tiling& t, Index size) const {
    return y >= 0 && x >= 0 && y + size <= t.height && x + size <= t.width;
  }
  Index pixel(const Tiling& t, Index i, Index j) const {
    return ((image * t.height + y + i) * t.width + x + j) * t.channels;
  }
};

bool outside(Index position, Index size) { return position < 0 || position >= size; }

// Copies a patch with zero padding, if it crosses the border or its channels do not fill vectors.
void gather_patch(const Tiling& t, const float* image, const Position& at, Index size, Index pitch, float* patch) {
  for (Index i = 0; i < size; ++i) {
    for (Index j = 0; j < size; ++j) {
      float* to = patch + (i * size + j) * pitch;
      const bool empty = outside(at.y + i, t.height) || outside(at.x + j, t.width);
      const Index filled = empty ? 0 : t.channels;
      if (filled > 0) std::memcpy(to, image + at.pixel(t, i, j), static_cast<std::size_t>(filled) * sizeof(float));
      std::fill(to + filled, to + pitch, 0.0f);
    }
  }
}

template <class Transform>
void transform_patches(const Tiling& t, const float* image, Index begin, Index end, const Planes& planes,
                       float* patch) {
  constexpr Index kSize = Transform::kIn;
  const Full d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  const bool whole_vectors = t.channels % kLanePad == 0;
  for (Index tile = begin; tile < end; ++tile) {
    const Position at(t, tile);
    const float* from = patch;
    Index row = kSize * planes.pitch, column = planes.pitch;
    if (whole_vectors && at.inside(t, kSize)) {
      from = image + at.pixel(t, 0, 0);
      row = t.width * t.channels;
      column = t.channels;
    } else {
      gather_patch(t, image, at, kSize, planes.pitch, patch);
    }
    float* to = planes.data + (tile - begin) * planes.pitch;
    for (Index c = 0; c < planes.pitch; c += lanes) {
      transform_square<Transform>(d, from + c, row, column, to + c, kPatch * planes.stride, planes.stride);
    }
  }
}

void input(const Tiling& t, const float* image, Index begin, Index end, const Planes& planes, float* patch) {
  transform_patches<InputTransform>(t, image, begin, end, planes, patch);
}

void gradient(const Tiling& t, const float* image, Index begin, Index end, const Planes& planes, float* patch) {
  transform_patches<GradientTransform>(t, image, begin, end, planes, patch);
}

void output(const Tiling& t, const Planes& planes, Index begin, Index end, float* image, float* patch) {
  const Full d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  const bool whole_vectors = t.channels % kLanePad == 0;
  for (Index tile = begin; tile < end; ++tile) {
    const Position at(t, tile);
    const bool in_place = whole_vectors && at.inside(t, kTile);
    float* to = in_place ? image + at.pixel(t, 0, 0) : patch;
    const Index row = in_place ? t.width * t.channels : kTile * planes.pitch;
    const Index column = in_place ? t.channels : planes.pitch;
    const float* from = planes.data + (tile - begin) * planes.pitch;
    for (Index c = 0; c < planes.pitch; c += lanes) {
      transform_square<OutputTransform>(d, from + c, kPatch * planes.stride, planes.stride, to + c, row, column);
    }
    if (in_place) continue;
    const Index height = std::min(kTile, t.height - at.y), width = std::min(kTile, t.width - at.x);
    for (Index i = 0; i < height; ++i) {
      for (Index j = 0; j < width; ++j) {
        std::memcpy(image + at.pixel(t, i, j), patch + (i * kTile + j) * planes.pitch,
                    static_cast<std::size_t>(t.channels) * sizeof(float));
      }
    }
  }
}

// Elements that lie side by side; `from_stride` and `to_stride`: between two values of an element.
template <class Transform>
void transform_elements(const float* from, Index from_stride, Index count, float* to, Index to_stride) {
  const Full d;
  const One one;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  const Index from_row = Transform::kIn * from_stride, to_row = Transform::kOut * to_stride;
  Index i = 0;
  for (; i + lanes <= count; i += lanes)
    transform_square<Transform>(d, from + i, from_row, from_stride, to + i, to_row, to_stride);
  for (; i < count; ++i) transform_square<Transform>(one, from + i, from_row, from_stride, to + i, to_row, to_stride);
}

void kernel(const float* taps, Index tap_stride, Index count, float* planes, Index plane_stride) {
  transform_elements<KernelTransform>(taps, tap_stride, count, planes, plane_stride);
}

void kernel_gradient(const float* planes, Index plane_stride, Index count, float* taps, Index tap_stride) {
  transform_elements<KernelGradientTransform>(planes, plane_stride, count, taps, tap_stride);
}

}  // namespace HWY_NAMESPACE
}  // namespace syncline::kernels::winograd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncline::kernels::winograd {

HWY_EXPORT(input);
HWY_EXPORT(gradient);
HWY_EXPORT(output);
HWY_EXPORT(kernel);
HWY_EXPORT(kernel_gradient);

void transform_input(const Tiling& tiling, const float* image, std::int64_t begin, std::int64_t end,
                     const Planes& planes, float* patch) {
  HWY_DYNAMIC_DISPATCH(input)(tiling, image, begin, end, planes, patch);
}

void transform_gradient(const Tiling& tiling, const float* image, std::int64_t begin, std::int64_t end,
                        const Planes& planes, float* patch) {
  HWY_DYNAMIC_DISPATCH(gradient)(tiling, image, begin, end, planes, patch);
}

void transform_output(const Tiling& tiling, const Planes& planes, std::int64_t begin, std::int64_t end, float* image,
                      float* patch) {
  HWY_DYNAMIC_DISPATCH(output)(tiling, planes, begin, end, image, patch);
}

void transform_kernel(const float* taps, std::int64_t tap_stride, std::int64_t count, float* planes,
                      std::int64_t plane_stride) {
  HWY_DYNAMIC_DISPATCH(kernel)(taps, tap_stride, count, planes, plane_stride);
}

void transform_kernel_gradient(const float* planes, std::int64_t plane_stride, std::int64_t count, float* taps,
                               std::int64_t tap_stride) {
  HWY_DYNAMIC_DISPATCH(kernel_gradient)(planes, plane_stride, count, taps, tap_stride);
}

}  // namespace syncline::kernels::winograd
#endif
