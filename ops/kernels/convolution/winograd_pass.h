// Pass: the tiles, blocks and planes of one of the three operations of winograd.cc and winograd_grad_kernel.cc.
#pragma once

#include <algorithm>

#include "ops/kernels/convolution/paths.h"
#include "ops/kernels/convolution/winograd_transforms.h"
#include "ops/kernels/product/packed_product.h"

namespace syncline::kernels::conv::winograd {

using kernels::winograd::kLanePad;
using kernels::winograd::kPlanes;
using kernels::winograd::kTile;
using kernels::winograd::Planes;
using kernels::winograd::Tiling;

inline constexpr Index kTaps = 9;
inline constexpr Index kBlockBytes = 1 << 20;  // the planes of a block of tiles stay in the second-level cache
inline constexpr Index kMinBlockTiles = 32;
inline constexpr Index kMaxBlockTiles = 256;
inline constexpr double kFlopsSaved = 2.5;  // assumed speedup over the direct sum, to divide work into slots
inline constexpr Index kFloat = sizeof(float);

// One pass: reads images of `in` channels and writes (or reads, for the kernel gradient) tiles of `out` channels.
struct Pass {
  Index in, out;
  Index in_pitch, out_pitch;    // channels, padded
  Index tiles;                  // of the whole batch
  Index block;                  // tiles of a block
  Index in_stride, out_stride;  // floats between planes; padding avoids cache set conflicts of 36 planes
  Tiling input, output;

  Pass(Index batch, Index in_h, Index in_w, Index in_c, Index out_h, Index out_w, Index out_c, Index pad_top,
       Index pad_left)
      : in(in_c), out(out_c), in_pitch(round_up(in_c, kLanePad)), out_pitch(round_up(out_c, kLanePad)) {
    const Index rows = (out_h + kTile - 1) / kTile, columns = (out_w + kTile - 1) / kTile;
    tiles = batch * rows * columns;
    const Index fitting = kBlockBytes / (kPlanes * kFloat * (in_pitch + out_pitch));
    block = std::clamp(fitting / 16 * 16, kMinBlockTiles, kMaxBlockTiles);
    in_stride = block * in_pitch + kLanePad;
    out_stride = block * out_pitch + kLanePad;
    input = {in_h, in_w, in_c, -pad_top, -pad_left, rows, columns};
    output = {out_h, out_w, out_c, 0, 0, rows, columns};
  }

  // Floats between the planes of a kernel, and of a kernel's gradient.
  Index kernel_stride() const { return packed_bytes<float>(in, out) / kFloat + kLanePad; }
  Index sum_stride() const { return round_up(in * out, kLanePad) + kLanePad; }
  Index kernel_floats() const { return kPlanes * kernel_stride(); }
  Index sum_floats() const { return kPlanes * sum_stride(); }
  Index block_floats() const { return kPlanes * (in_stride + out_stride + std::max(in_pitch, out_pitch)); }
  Index blocks() const { return (tiles + block - 1) / block; }
};

inline Pass forward_pass(const ConvGeometry& g) {
  return {g.batch, g.in_h, g.in_w, g.in_c, g.out_h, g.out_w, g.out_c, g.pad_top, g.pad_left};
}

// The slots that share the blocks. `extra_floats`: of each slot, besides its Workspace.
inline Chunks slots_of(const ConvGeometry& g, const Pass& pass, Index extra_floats) {
  return divide_into_slots(pass.blocks(), flops(g) / kFlopsSaved, (pass.block_floats() + extra_floats) * kFloat);
}

// The scratch of one slot: planes of the inputs and outputs of a block, and a patch.
struct Workspace {
  Planes input, output;
  float* patch;
  Workspace(const Pass& p, float* memory)
      : input{memory, p.in_stride, p.in_pitch},
        output{memory + kPlanes * p.in_stride, p.out_stride, p.out_pitch},
        patch(memory + kPlanes * (p.in_stride + p.out_stride)) {}
};

}  // namespace syncline::kernels::conv::winograd
