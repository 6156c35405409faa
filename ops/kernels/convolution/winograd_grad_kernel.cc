// The gradient of the kernel of Winograd's F(4x4, 3x3): the adjoint steps of winograd.cc. The sums of a block of tiles
// are 36 matrix products.
#include <algorithm>

#include "ops/kernels/convolution/winograd_pass.h"
#include "ops/kernels/product/gemm.h"

namespace syncline::kernels::conv::winograd {
namespace {

constexpr Index kGroupBytes = 32 << 20;  // the planes of tiles that a wide kernel's gradient takes at once

// The gradient of the taps, from the planes of its sums.
void transform_sums(const Pass& p, const float* sums, float* taps) {
  const Index size = p.in * p.out;
  parallel_for(size, 15.0, [&](Index begin, Index end) {
    kernels::winograd::transform_kernel_gradient(sums + begin, p.sum_stride(), end - begin, taps + begin, size);
  });
}

// True if a slot's partial sums of a kernel gradient would not stay in the second-level cache.
bool is_wide(const Pass& p) { return p.sum_floats() * kFloat > kBlockBytes; }

// Blocks of a kernel's channels: as wide as possible, but enough for many cores.
struct KernelBlocks {
  Chunks rows, columns;

  KernelBlocks(Index in, Index out) {
    constexpr Index kWidest = 64, kNarrowest = 32, kEnough = 16;
    for (Index width = kWidest; width >= kNarrowest; width /= 2) {
      rows = {in, width, (in + width - 1) / width};
      columns = {out, width, (out + width - 1) / width};
      if (count() >= kEnough) break;
    }
  }
  Index count() const { return rows.count * columns.count; }
  Index stride() const { return rows.size * columns.size + kLanePad; }  // floats between planes
  Index floats() const { return kPlanes * stride(); }
};

// The gradient of a wide kernel: transforms the tiles of a group, then sums each plane by one product. There are no
// partial sums, and each plane's sum is read and written once a group. With few tiles, the products would wait for the
// memory of their sums: a block of the kernel is summed and transformed back within the second-level cache instead.
struct Group {
  static constexpr Index kFewTiles = 32;
  Index tiles;                  // as many as kGroupBytes hold, but at least kMinBlockTiles
  bool by_blocks;               // of the kernel
  Index in_stride, out_stride;  // floats between planes
  Index patch;                  // floats of a slot's patch
  KernelBlocks blocks;
  Chunks tile_slots, block_slots;

  Group(const ConvGeometry& g, const Pass& p)
      : patch(kPlanes * std::max(p.in_pitch, p.out_pitch)), blocks(p.in, p.out) {
    const Index fitting = kGroupBytes / (kPlanes * kFloat * (p.in_pitch + p.out_pitch)) / 16 * 16;
    tiles = std::min(std::max(fitting, kMinBlockTiles), p.tiles);
    by_blocks = tiles == p.tiles && tiles <= kFewTiles;
    in_stride = tiles * p.in_pitch + kLanePad;
    out_stride = tiles * p.out_pitch + kLanePad;
    tile_slots = divide_into_slots(tiles, flops(g) / kFlopsSaved, patch * kFloat);
    block_slots = divide_into_slots(blocks.count(), flops(g) / kFlopsSaved, blocks.floats() * kFloat);
  }
  Index plane_floats() const { return kPlanes * (in_stride + out_stride); }
  // Of the slots' patches, and then of the sums.
  Index patch_floats() const { return tile_slots.count * patch; }
  Index sum_floats(const Pass& p) const { return by_blocks ? block_slots.count * blocks.floats() : p.sum_floats(); }
  Index floats(const Pass& p) const { return plane_floats() + patch_floats() + sum_floats(p); }
};

// Transforms the tiles [first, first + tiles).
void transform_group(const Pass& p, const Group& group, const float* x, const float* dy, Index first, Index tiles,
                     const Planes& input, const Planes& output, float* patches) {
  parallel_chunks(group.tile_slots, [&](Index slot, Index begin, Index end) {
    float* const patch = patches + slot * group.patch;
    const auto rows = [&](const Planes& planes) {
      return Planes{planes.data + begin * planes.pitch, planes.stride, planes.pitch};
    };
    end = std::min(end, tiles);
    if (begin >= end) return;
    kernels::winograd::transform_input(p.input, x, first + begin, first + end, rows(input), patch);
    kernels::winograd::transform_gradient(p.output, dy, first + begin, first + end, rows(output), patch);
  });
}

// dw of all tiles. `memory`: of the slots' sums.
void sum_by_blocks(const Pass& p, const Group& group, const Planes& input, const Planes& output, float* memory,
                   float* dw) {
  const KernelBlocks& blocks = group.blocks;
  const Index stride = blocks.stride();
  parallel_chunks(group.block_slots, [&](Index slot, Index begin, Index end) {
    float* const sums = memory + slot * blocks.floats();
    for (Index block = begin; block < end; ++block) {
      const Index r = block / blocks.columns.count, c = block % blocks.columns.count;
      const Index i = blocks.rows.begin(r), height = blocks.rows.end(r) - i;
      const Index j = blocks.columns.begin(c), width = blocks.columns.end(c) - j;
      for (Index plane = 0; plane < kPlanes; ++plane)
        gemm_serial(Trans::kYes, Trans::kNo, height, width, group.tiles, 1.0f, input.data + plane * input.stride + i,
                    input.pitch, output.data + plane * output.stride + j, output.pitch, 0.0f, sums + plane * stride,
                    width);
      for (Index row = 0; row < height; ++row)
        kernels::winograd::transform_kernel_gradient(sums + row * width, stride, width, dw + (i + row) * p.out + j,
                                                     p.in * p.out);
    }
  });
}

void sum_planes(const ConvGeometry& g, const Pass& p, const Planes& input, const Planes& output, Index tiles, bool add,
                float* sums) {
  parallel_for(kPlanes, flops(g) * kNanosecondsPerFlop / kPlanes, [&](Index begin, Index end) {
    for (Index plane = begin; plane < end; ++plane)
      gemm_serial(Trans::kYes, Trans::kNo, p.in, p.out, tiles, 1.0f, input.data + plane * input.stride, input.pitch,
                  output.data + plane * output.stride, output.pitch, add ? 1.0f : 0.0f, sums + plane * p.sum_stride(),
                  p.out);
  });
}

void wide_grad_kernel(const ConvGeometry& g, const Pass& p, const float* x, const float* dy, float* dw, float* memory) {
  const Group group(g, p);
  const Planes input{memory, group.in_stride, p.in_pitch};
  const Planes output{memory + kPlanes * group.in_stride, group.out_stride, p.out_pitch};
  float* const patches = memory + group.plane_floats();
  float* const sums = patches + group.patch_floats();
  for (Index first = 0; first < p.tiles; first += group.tiles) {
    const Index tiles = std::min(group.tiles, p.tiles - first);
    transform_group(p, group, x, dy, first, tiles, input, output, patches);
    if (group.by_blocks) return sum_by_blocks(p, group, input, output, sums, dw);
    sum_planes(g, p, input, output, tiles, first > 0, sums);
  }
  transform_sums(p, sums, dw);
}

// Of a slot's planes and gradient.
Index slot_sum_floats(const Pass& p) { return p.sum_floats() + kTaps * p.in * p.out; }

// If there are blocks for four slots, a slot has at least two: a block costs little more than writing a slot's sums.
Chunks grad_kernel_slots(const ConvGeometry& g, const Pass& p) {
  Chunks slots = slots_of(g, p, slot_sum_floats(p));
  slots.size = std::max(slots.size, std::min<Index>(2, slots.items / 4));
  slots.count = (slots.items + slots.size - 1) / slots.size;
  return slots;
}

// The gradient of a kernel whose planes stay in the second-level cache: each slot sums its blocks and transforms the
// sums back; then the slots' gradients are added. `memory`: of the slots.
void narrow_grad_kernel(const Pass& p, const Chunks& slots, const float* x, const float* dy, float* dw, float* memory) {
  const Index size = p.in * p.out;
  float* const gradients = memory + slots.count * (p.block_floats() + p.sum_floats());
  parallel_chunks(slots, [&](Index slot, Index first, Index last) {
    float* const sums = memory + slot * (p.block_floats() + p.sum_floats());
    const Workspace work(p, sums + p.sum_floats());
    for (Index begin = first * p.block; begin < std::min(last * p.block, p.tiles); begin += p.block) {
      const Index end = std::min(begin + p.block, p.tiles);
      kernels::winograd::transform_input(p.input, x, begin, end, work.input, work.patch);
      kernels::winograd::transform_gradient(p.output, dy, begin, end, work.output, work.patch);
      const float beta = begin == first * p.block ? 0.0f : 1.0f;
      for (Index plane = 0; plane < kPlanes; ++plane) {
        gemm_serial(Trans::kYes, Trans::kNo, p.in, p.out, end - begin, 1.0f, work.input.data + plane * p.in_stride,
                    p.in_pitch, work.output.data + plane * p.out_stride, p.out_pitch, beta,
                    sums + plane * p.sum_stride(), p.out);
      }
    }
    kernels::winograd::transform_kernel_gradient(sums, p.sum_stride(), size,
                                                 slots.count > 1 ? gradients + slot * kTaps * size : dw, size);
  });
  if (slots.count > 1) add_partials(gradients, slots.count, kTaps * size, dw);
}

}  // namespace

std::size_t grad_kernel_scratch_bytes(const ConvGeometry& g) {
  const Pass p = forward_pass(g);
  if (is_wide(p)) return static_cast<std::size_t>(Group(g, p).floats(p) * kFloat);
  return static_cast<std::size_t>(grad_kernel_slots(g, p).count * (p.block_floats() + slot_sum_floats(p)) * kFloat);
}

void grad_kernel(const ConvGeometry& g, const float* x, const float* dy, float* dw, void* scratch) {
  const Pass p = forward_pass(g);
  auto* const memory = static_cast<float*>(scratch);
  if (p.tiles == 0) std::fill_n(dw, kTaps * p.in * p.out, 0.0f);
  else if (is_wide(p)) wide_grad_kernel(g, p, x, dy, dw, memory);
  else narrow_grad_kernel(p, grad_kernel_slots(g, p), x, dy, dw, memory);
}

}  // namespace syncline::kernels::conv::winograd
