// The transforms of Winograd's F(4x4, 3x3), vectorized over channels, for the winograd path of conv.
//
// A tile is 4x4 output pixels. A transformed tile has 36 values per channel, stored in 36 matrices ("planes") of tiles
// x channels, so a convolution is 36 matrix products. Channels are padded to kLanePad so that loops have no tails.
#pragma once

#include <cstdint>

namespace syncline::kernels::winograd {

inline constexpr std::int64_t kTile = 4;   // output pixels of a tile per axis
inline constexpr std::int64_t kPatch = 6;  // input pixels of a tile per axis
inline constexpr std::int64_t kPlanes = 36;
inline constexpr std::int64_t kLanePad = 16;  // a multiple of every target's vector lanes

// The tiles of a batch of images, numbered along columns, then rows, then images.
struct Tiling {
  std::int64_t height, width, channels;  // of the images read or written
  std::int64_t origin_y, origin_x;       // origin of the first tile's patch: the negative pads
  std::int64_t rows, columns;            // tiles per image
};

// Plane p, tile t, channel c is at data[p * stride + t * pitch + c]; t counts from `begin`.
struct Planes {
  float* data;
  std::int64_t stride, pitch;
};

// These functions process tiles [begin, end). `patch` is a buffer of kPlanes * padded channels.
// Reads 6x6 patches: B^T d B.
void transform_input(const Tiling& tiling, const float* image, std::int64_t begin, std::int64_t end,
                     const Planes& planes, float* patch);
// Reads 4x4 patches of the gradient of an output: A dy A^T.
void transform_gradient(const Tiling& tiling, const float* image, std::int64_t begin, std::int64_t end,
                        const Planes& planes, float* patch);
// Writes 4x4 patches of output: A^T m A.
void transform_output(const Tiling& tiling, const Planes& planes, std::int64_t begin, std::int64_t end, float* image,
                      float* patch);

// Transform `count` elements (one per pair of channels); planes and taps are `plane_stride` and `tap_stride` floats
// apart. Strides of powers of two are slow: the planes of an element would compete for the same lines of the cache.
// G g G^T, from 9 taps to 36 planes.
void transform_kernel(const float* taps, std::int64_t tap_stride, std::int64_t count, float* planes,
                      std::int64_t plane_stride);
// The adjoint, G^T s G, from 36 planes to 9 taps.
void transform_kernel_gradient(const float* planes, std::int64_t plane_stride, std::int64_t count, float* taps,
                               std::int64_t tap_stride);

}  // namespace syncline::kernels::winograd
