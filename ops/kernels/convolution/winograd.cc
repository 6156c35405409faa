// Winograd's F(4x4, 3x3): 36 products give 16 outputs of a 3x3 kernel, instead of 144. The products of a block of tiles
// are 36 matrix products, one per point of the transform. The gradient of the kernel applies the adjoint steps.
#include <algorithm>

#include "ops/kernels/convolution/paths.h"
#include "ops/kernels/convolution/winograd_transforms.h"
#include "ops/kernels/product/gemm.h"
#include "ops/kernels/product/packed_product.h"

namespace syncline::kernels::conv::winograd {
namespace {

using kernels::winograd::kLanePad;
using kernels::winograd::kPatch;
using kernels::winograd::kPlanes;
using kernels::winograd::kTile;
using kernels::winograd::Planes;
using kernels::winograd::Tiling;

constexpr Index kTaps = 9;
constexpr Index kMinChannels = 16;      // with fewer, the transforms cost more than they save
constexpr Index kMinTiles = 16;         // with fewer, the kernel transform costs more than it saves
constexpr Index kBlockBytes = 1 << 20;  // the planes of a block of tiles stay in the second-level cache
constexpr Index kMinBlockTiles = 32;
constexpr Index kMaxBlockTiles = 256;
constexpr Index kGroupBytes = 32 << 20;  // the planes of tiles that a wide kernel's gradient takes at once
constexpr double kFlopsSaved = 2.5;      // assumed speedup over the direct sum, to divide work into slots
constexpr Index kFloat = sizeof(float);

bool is_plain_3x3(const ConvGeometry& g) {
  return g.is_flat() && g.k_h == 3 && g.k_w == 3 && g.stride_h == 1 && g.stride_w == 1 && g.dilation_h == 1 &&
         g.dilation_w == 1 && g.in_c >= kMinChannels && g.out_c >= kMinChannels;
}

// True if there are enough tiles and at most half of their pixels are outside the image.
bool tiles_well(const ConvGeometry& g, Index height, Index width) {
  const Index tiles = ((height + kTile - 1) / kTile) * ((width + kTile - 1) / kTile);
  return std::max(g.batch, g.of_all_ranks) * tiles >= kMinTiles && tiles * kTile * kTile <= 2 * height * width;
}

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

  // The planes of a kernel are packed for several blocks; one block packs them as it multiplies.
  bool packs() const { return blocks() > 1; }
  // Floats between the planes of a kernel, and of a kernel's gradient.
  Index kernel_stride() const { return packs() ? packed_bytes<float>(in, out) / kFloat + kLanePad : sum_stride(); }
  Index sum_stride() const { return round_up(in * out, kLanePad) + kLanePad; }
  Index block_floats() const { return kPlanes * (in_stride + out_stride + std::max(in_pitch, out_pitch)); }
  Index blocks() const { return (tiles + block - 1) / block; }
};

Pass forward_pass(const ConvGeometry& g) {
  return {g.batch, g.in_h, g.in_w, g.in_c, g.out_h, g.out_w, g.out_c, g.pad_top, g.pad_left};
}

// dx is a convolution of dy with the rotated kernel.
Pass grad_input_pass(const ConvGeometry& g) {
  return {g.batch, g.out_h, g.out_w, g.out_c, g.in_h, g.in_w, g.in_c, 2 - g.pad_top, 2 - g.pad_left};
}

Chunks slots_of(const ConvGeometry& g, const Pass& pass, Index extra_floats) {
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

// The output of tiles [begin, end): lines of pixels within each row of tiles.
void finish_tiles(const Tiling& output, Index begin, Index end, JoinedRanges& epilogue) {
  for (Index tile = begin; tile < end;) {
    const Index row = tile / output.columns, image = row / output.rows, column = tile % output.columns;
    const Index next = std::min(end, (row + 1) * output.columns);
    const Index left = column * kTile, right = std::min((column + next - tile) * kTile, output.width);
    const Index top = row % output.rows * kTile, bottom = std::min(top + kTile, output.height);
    const auto at = [&](Index y, Index x) {
      return ((image * output.height + y) * output.width + x) * output.channels;
    };
    if (right - left == output.width) epilogue.add(at(top, 0), at(bottom, 0));
    else
      for (Index y = top; y < bottom; ++y) epilogue.add(at(y, left), at(y, right));
    tile = next;
  }
}

// Computes y from x and the transformed kernel.
void convolve(const Pass& p, const Chunks& slots, const float* x, const float* kernel, float* y, float* memory,
              const Epilogue* epilogue) {
  parallel_chunks(slots, [&](Index slot, Index first, Index last) {
    const Workspace work(p, memory + slot * p.block_floats());
    for (Index begin = first * p.block; begin < std::min(last * p.block, p.tiles); begin += p.block) {
      const Index end = std::min(begin + p.block, p.tiles);
      kernels::winograd::transform_input(p.input, x, begin, end, work.input, work.patch);
      for (Index plane = 0; plane < kPlanes; ++plane) {
        const float* const in = work.input.data + plane * p.in_stride;
        const float* const w = kernel + plane * p.kernel_stride();
        float* const out = work.output.data + plane * p.out_stride;
        if (p.packs()) packed_product_serial(end - begin, p.out, p.in, in, p.in_pitch, w, out, p.out_pitch);
        else
          gemm_serial(Trans::kNo, Trans::kNo, end - begin, p.out, p.in, 1.0f, in, p.in_pitch, w, p.out, 0.0f, out,
                      p.out_pitch);
      }
      kernels::winograd::transform_output(p.output, work.output, begin, end, y, work.patch);
      if (epilogue == nullptr) continue;
      JoinedRanges finished(*epilogue);
      finish_tiles(p.output, begin, end, finished);
      finished.flush();
    }
  });
}

// From in x out taps to planes. A few rows at a time, so that taps are read, and planes written, in their order.
void transform_taps(const Pass& p, const float* taps, float* planes) {
  constexpr Index kRows = 16;
  const Index width = p.packs() ? kPanelColumns<float> : p.out, stride = p.kernel_stride();
  parallel_for((p.in + kRows - 1) / kRows, 15.0 * static_cast<double>(kRows * p.out), [&](Index begin, Index end) {
    for (Index first = begin * kRows; first < std::min(end * kRows, p.in); first += kRows)
      for (Index column = 0; column < p.out; column += width)
        for (Index row = first; row < std::min(first + kRows, p.in); ++row) {
          const Index count = std::min(width, p.out - column);
          float* const to = planes + column * p.in + row * width;
          kernels::winograd::transform_kernel(taps + row * p.out + column, p.in * p.out, count, to, stride);
          for (Index plane = 0; count < width && plane < kPlanes; ++plane)
            std::fill(to + plane * stride + count, to + plane * stride + width, 0.0f);
        }
  });
}

// The gradient of the taps, from the planes of its sums.
void transform_sums(const Pass& p, const float* sums, float* taps) {
  const Index size = p.in * p.out;
  parallel_for(size, 15.0, [&](Index begin, Index end) {
    kernels::winograd::transform_kernel_gradient(sums + begin, p.sum_stride(), end - begin, taps + begin, size);
  });
}

// taps[t][k][c] = w[8 - t][c][k].
void rotate_kernel(const float* w, Index in, Index out, float* taps) {
  parallel_for(kTaps * out, static_cast<double>(in), [&](Index begin, Index end) {
    for (Index row = begin; row < end; ++row) {
      const float* from = w + (kTaps - 1 - row / out) * in * out + row % out;
      for (Index c = 0; c < in; ++c) taps[row * in + c] = from[c * out];
    }
  });
}

}  // namespace

bool forward_fits(const ConvGeometry& g) { return is_plain_3x3(g) && tiles_well(g, g.out_h, g.out_w); }
bool grad_input_fits(const ConvGeometry& g) { return is_plain_3x3(g) && tiles_well(g, g.in_h, g.in_w); }
bool grad_kernel_fits(const ConvGeometry& g) { return forward_fits(g); }

std::size_t forward_scratch_bytes(const ConvGeometry& g) {
  const Pass p = forward_pass(g);
  return static_cast<std::size_t>((kPlanes * p.kernel_stride() + slots_of(g, p, 0).count * p.block_floats()) * kFloat);
}

void forward(const ConvGeometry& g, const float* x, const float* w, float* y, void* scratch, const Epilogue* epilogue) {
  const Pass p = forward_pass(g);
  float* kernel = static_cast<float*>(scratch);
  transform_taps(p, w, kernel);
  convolve(p, slots_of(g, p, 0), x, kernel, y, kernel + kPlanes * p.kernel_stride(), epilogue);
}

// The rotated kernel shares memory with the blocks: it is read before they are written.
std::size_t grad_input_scratch_bytes(const ConvGeometry& g) {
  const Pass p = grad_input_pass(g);
  const Index floats = std::max(slots_of(g, p, 0).count * p.block_floats(), kTaps * p.in * p.out);
  return static_cast<std::size_t>((kPlanes * p.kernel_stride() + floats) * kFloat);
}

void grad_input(const ConvGeometry& g, const float* dy, const float* w, float* dx, void* scratch,
                const Epilogue* epilogue) {
  const Pass p = grad_input_pass(g);
  float* kernel = static_cast<float*>(scratch);
  float* memory = kernel + kPlanes * p.kernel_stride();
  rotate_kernel(w, g.in_c, g.out_c, memory);
  transform_taps(p, memory, kernel);
  convolve(p, slots_of(g, p, 0), dy, kernel, dx, memory, epilogue);
}

namespace {

// True if a slot's partial sums of a kernel gradient would not stay in the second-level cache.
bool is_wide(const Pass& p) { return kPlanes * p.sum_stride() * kFloat > kBlockBytes; }

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
  Index sum_floats(const Pass& p) const {
    return by_blocks ? block_slots.count * blocks.floats() : kPlanes * p.sum_stride();
  }
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
Index slot_sum_floats(const Pass& p) { return kPlanes * p.sum_stride() + kTaps * p.in * p.out; }

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
  float* const gradients = memory + slots.count * (p.block_floats() + kPlanes * p.sum_stride());
  parallel_chunks(slots, [&](Index slot, Index first, Index last) {
    float* const sums = memory + slot * (p.block_floats() + kPlanes * p.sum_stride());
    const Workspace work(p, sums + kPlanes * p.sum_stride());
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
