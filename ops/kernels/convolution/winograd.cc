// Winograd's F(4x4, 3x3): 36 products give 16 outputs of a 3x3 kernel, instead of 144. The products of a block of tiles
// are 36 matrix products, one per point of the transform. The gradient of the kernel: winograd_grad_kernel.cc.
#include <algorithm>
#include <cstdint>

#include "ops/kernels/convolution/winograd_pass.h"
#include "ops/kernels/copy/transpose_square.h"
#include "ops/kernels/product/gemm.h"

namespace syncline::kernels::conv::winograd {
namespace {

constexpr Index kMinChannels = 16;  // with fewer, the transforms cost more than they save
constexpr Index kMinTiles = 16;     // with fewer, the kernel transform costs more than it saves

bool is_plain_3x3(const ConvGeometry& g) {
  return g.is_flat() && g.k_h == 3 && g.k_w == 3 && g.stride_h == 1 && g.stride_w == 1 && g.dilation_h == 1 &&
         g.dilation_w == 1 && g.in_c >= kMinChannels && g.out_c >= kMinChannels;
}

// True if there are enough tiles and at most half of their pixels are outside the image.
bool tiles_well(const ConvGeometry& g, Index height, Index width) {
  const Index tiles = ((height + kTile - 1) / kTile) * ((width + kTile - 1) / kTile);
  return std::max(g.batch, g.of_all_ranks) * tiles >= kMinTiles && tiles * kTile * kTile <= 2 * height * width;
}

// dx is a convolution of dy with the rotated kernel.
Pass grad_input_pass(const ConvGeometry& g) {
  return {g.batch, g.out_h, g.out_w, g.out_c, g.in_h, g.in_w, g.in_c, 2 - g.pad_top, 2 - g.pad_left};
}

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

// The 36 planes of a transformed kernel: packed matrices (packed_product.h), or row-major ones.
struct Kernel {
  const float* planes;
  bool packed = true;
};

// Computes y from x.
void convolve(const Pass& p, const Chunks& slots, const float* x, const Kernel& kernel, float* y, float* memory,
              const Epilogue* epilogue) {
  parallel_chunks(slots, [&](Index slot, Index first, Index last) {
    const Workspace work(p, memory + slot * p.block_floats());
    for (Index begin = first * p.block; begin < std::min(last * p.block, p.tiles); begin += p.block) {
      const Index end = std::min(begin + p.block, p.tiles);
      kernels::winograd::transform_input(p.input, x, begin, end, work.input, work.patch);
      for (Index plane = 0; plane < kPlanes; ++plane) {
        const float* const in = work.input.data + plane * p.in_stride;
        const float* const w = kernel.planes + plane * p.kernel_stride();
        float* const out = work.output.data + plane * p.out_stride;
        if (kernel.packed) packed_product_serial(end - begin, p.out, p.in, in, p.in_pitch, w, out, p.out_pitch);
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

// The taps of some rows and columns of a kernel of in x out channels.
struct TapsBlock {
  static constexpr Index kRows = 4 * kSquare, kColumns = kPanelColumns<float>;
  static constexpr Index kTapFloats = kRows * kColumns + kLanePad;  // powers of two are slow (winograd_transforms.h)

  // Of a kernel as it is stored.
  static TapsBlock stored(const Pass& p, const float* w, Index row, Index column) {
    return {w + row * p.out + column, p.out, p.in * p.out};
  }
  // Of the rotated kernel, whose tap t at row k and column c is w[8 - t][c][k]. Copies the taps to `room`.
  static TapsBlock rotated(const Pass& p, const float* w, Index row, Index column, float* room) {
    const Index rows = std::min(kRows, p.in - row), columns = std::min(kColumns, p.out - column);
    for (Index tap = 0; tap < kTaps; ++tap)
      for (Index first = 0; first < rows; first += kSquare) {
        const Index height = std::min(kSquare, rows - first), squares = height == kSquare ? columns / kSquare : 0;
        const float* from = w + ((kTaps - 1 - tap) * p.out + column) * p.in + row + first;
        float* to = room + tap * kTapFloats + first * kColumns;
        transpose_squares(reinterpret_cast<const std::uint32_t*>(from), p.in, reinterpret_cast<std::uint32_t*>(to),
                          kColumns, squares, /*stream=*/false);
        for (Index c = squares * kSquare; c < columns; ++c)
          for (Index k = 0; k < height; ++k) to[k * kColumns + c] = from[c * p.in + k];
      }
    return {room, kColumns, kTapFloats};
  }

  const float* at;
  Index row_stride, tap_stride;
};

// Transforms a kernel of in x out channels to 36 packed planes, one block of taps at a time. `block(row, column, room)`
// returns the TapsBlock that begins there; `room` is memory for it.
template <class Block>
void transform_taps(const Pass& p, float* planes, const Block& block) {
  constexpr Index kRows = TapsBlock::kRows, kColumns = TapsBlock::kColumns;
  const Index panels = panels_of<float>(p.out), stride = p.kernel_stride();
  parallel_for((p.in + kRows - 1) / kRows * panels, 15.0 * kRows * kColumns, [&](Index begin, Index end) {
    alignas(64) float room[kTaps * TapsBlock::kTapFloats];
    for (Index i = begin; i < end; ++i) {
      const Index first = i / panels * kRows, column = i % panels * kColumns;
      const Index count = std::min(kColumns, p.out - column);
      const TapsBlock taps = block(first, column, room);
      for (Index row = first; row < std::min(first + kRows, p.in); ++row) {
        float* const to = planes + column * p.in + row * kColumns;
        kernels::winograd::transform_kernel(taps.at + (row - first) * taps.row_stride, taps.tap_stride, count, to,
                                            stride);
        if (count == kColumns) continue;
        for (Index plane = 0; plane < kPlanes; ++plane)  // zeros fill the last panel
          std::fill(to + plane * stride + count, to + plane * stride + kColumns, 0.0f);
      }
    }
  });
}

// The scratch of a convolution: the kernel's planes, then the slots' blocks.
std::size_t scratch_bytes(const ConvGeometry& g, const Pass& p) {
  return static_cast<std::size_t>((p.kernel_floats() + slots_of(g, p, 0).count * p.block_floats()) * kFloat);
}

// Products and transforms.
double pass_flops(const Pass& p) {
  constexpr double kInputTransform = 216, kOutputTransform = 140, kKernelTransform = 108;  // of one channel or pair
  const auto tiles = static_cast<double>(p.tiles), in = static_cast<double>(p.in), out = static_cast<double>(p.out);
  return tiles * (2 * kPlanes * in * out + kInputTransform * in + kOutputTransform * out) + kKernelTransform * in * out;
}

}  // namespace

bool forward_fits(const ConvGeometry& g) { return is_plain_3x3(g) && tiles_well(g, g.out_h, g.out_w); }
bool grad_input_fits(const ConvGeometry& g) { return is_plain_3x3(g) && tiles_well(g, g.in_h, g.in_w); }
bool grad_kernel_fits(const ConvGeometry& g) { return forward_fits(g); }

std::size_t forward_scratch_bytes(const ConvGeometry& g) { return scratch_bytes(g, forward_pass(g)); }

void forward(const ConvGeometry& g, const float* x, const float* w, float* y, void* scratch, const Epilogue* epilogue) {
  const Pass p = forward_pass(g);
  float* kernel = static_cast<float*>(scratch);
  const bool packed = p.blocks() > 1;  // packing does not pay for one block, which reads each plane once
  if (packed)
    transform_taps(p, kernel, [&](Index row, Index column, float*) { return TapsBlock::stored(p, w, row, column); });
  else
    parallel_for(p.in * p.out, 15.0, [&](Index begin, Index end) {
      kernels::winograd::transform_kernel(w + begin, p.in * p.out, end - begin, kernel + begin, p.kernel_stride());
    });
  convolve(p, slots_of(g, p, 0), x, {kernel, packed}, y, kernel + p.kernel_floats(), epilogue);
}

std::size_t grad_input_scratch_bytes(const ConvGeometry& g) { return scratch_bytes(g, grad_input_pass(g)); }
double forward_flops(const ConvGeometry& g) { return pass_flops(forward_pass(g)); }
double grad_input_flops(const ConvGeometry& g) { return pass_flops(grad_input_pass(g)); }

void grad_input(const ConvGeometry& g, const float* dy, const float* w, float* dx, void* scratch,
                const Epilogue* epilogue) {
  const Pass p = grad_input_pass(g);
  float* kernel = static_cast<float*>(scratch);
  transform_taps(p, kernel,
                 [&](Index row, Index column, float* room) { return TapsBlock::rotated(p, w, row, column, room); });
  convolve(p, slots_of(g, p, 0), dy, {kernel}, dx, kernel + p.kernel_floats(), epilogue);
}

}  // namespace syncline::kernels::conv::winograd
