// Convolution as products with the matrix of patches. A row is an output pixel, a column is a tap. The matrix is built
// at once, or one block of rows at a time (at_once, sums_at_once). The blocks of y and of dx share one packed kernel.
#include <algorithm>
#include <vector>

#include "ops/kernels/convolution/paths.h"
#include "ops/kernels/product/blocked_product.h"
#include "ops/kernels/product/gemm.h"
#include "ops/kernels/product/packed_product.h"
#include "ops/kernels/product/rows_product.h"
#include "syncline/error.h"

namespace syncline::kernels::conv::im2col {
namespace {

constexpr Index kBlockBytes = 256 << 10;  // a block of patches stays in the second-level cache
constexpr Index kMinBlockRows = 48, kMaxBlockRows = 480, kBlockRowsMultiple = 48;  // whole tiles of a product
constexpr Index kWideKernel = 192, kEnoughRowsSummed = 128;
constexpr Index kSmallMatrixBytes = 8 << 20, kMatrixOfPartsBytes = 32 << 20;

// True for a 1x1 kernel that visits every pixel: the image is the matrix of patches.
bool is_pointwise(const ConvGeometry& g) {
  return g.k_d * g.k_h * g.k_w == 1 && g.stride_d * g.stride_h * g.stride_w == 1 && g.in_d == g.out_d &&
         g.in_h == g.out_h && g.in_w == g.out_w;
}

Index depth_of(const ConvGeometry& g) { return g.k_d * g.k_h * g.k_w * g.in_c; }

Index all_rows(const ConvGeometry& g) { return g.batch * g.out_d * g.out_h * g.out_w; }

// The bytes of the whole matrix of patches, unless it is the image.
template <class T>
Index matrix_bytes(const ConvGeometry& g) {
  return is_pointwise(g) ? 0 : round_up(all_rows(g) * depth_of(g) * static_cast<Index>(sizeof(T)), 64);
}

template <class T>
Index block_rows(const ConvGeometry& g, Index least = kMinBlockRows) {
  const Index rows = kBlockBytes / std::max<Index>(1, depth_of(g) * static_cast<Index>(sizeof(T)));
  return std::clamp(rows, least, kMaxBlockRows) / kBlockRowsMultiple * kBlockRowsMultiple;
}

// The rows of a block for dw. Each block reads and writes all sums, so a wide kernel has larger blocks.
template <class T>
Index rows_summed(const ConvGeometry& g) {
  return block_rows<T>(g, g.out_c >= kWideKernel ? 2 * kMinBlockRows : kMinBlockRows);
}

// For y and dx. If the matrix is one block, or has fewer rows than the kernel has columns, packing the kernel takes
// longer than writing all patches to memory.
template <class T>
bool at_once(const ConvGeometry& g) {
  return is_pointwise(g) ||
         (all_rows(g) <= std::max(block_rows<T>(g), g.out_c) && matrix_bytes<T>(g) <= kSmallMatrixBytes);
}

// For dw. With few rows in a block, reading and writing the sums takes longer than writing all patches to memory.
template <class T>
bool sums_at_once(const ConvGeometry& g) {
  return is_pointwise(g) ||
         (rows_summed<T>(g) < std::max(kEnoughRowsSummed, g.out_c) && matrix_bytes<T>(g) <= kSmallMatrixBytes);
}

// The bytes of one block of patches, rounded so that the block of every slot is aligned.
template <class T>
Index block_bytes(const ConvGeometry& g, Index rows) {
  return round_up(rows * depth_of(g) * static_cast<Index>(sizeof(T)), 64);
}

template <class T>
Chunks forward_slots(const ConvGeometry& g) {
  const Index rows = block_rows<T>(g);
  return divide_into_slots((all_rows(g) + rows - 1) / rows, flops(g), block_bytes<T>(g, rows));
}

// With strides of 1, dx is a convolution of dy with the flipped kernel, which builds patches of taps * out_c elements.
// Otherwise it is the sum of overlapping patches of taps * in_c elements, one image at a time. The smaller patches take
// less time, but only a convolution uses several threads for an image.
constexpr Index kFewImages = 4, kEnoughColumns = 16;

bool is_convolution(const ConvGeometry& g) {
  if (g.stride_d * g.stride_h * g.stride_w > 1 || is_pointwise(g)) return false;
  return g.in_c >= g.out_c || (g.in_c >= kEnoughColumns && std::max(g.batch, g.of_all_ranks) < kFewImages);
}

template <class T>
Index flipped_kernel_bytes(const ConvGeometry& g) {
  return round_up(depth_of(g) * g.out_c * static_cast<Index>(sizeof(T)), 64);
}

// (taps, in, out) -> (taps, out, in), with the taps in reverse order.
template <class T>
void flip_kernel(const ConvGeometry& g, const T* w, T* kernel) {
  const Index taps = g.k_d * g.k_h * g.k_w, size = g.in_c * g.out_c;
  parallel_for(taps, static_cast<double>(size), [&](Index begin, Index end) {
    for (Index tap = begin; tap < end; ++tap) {
      const T* from = w + (taps - 1 - tap) * size;
      T* to = kernel + tap * size;
      for (Index k = 0; k < g.out_c; ++k) {
        for (Index c = 0; c < g.in_c; ++c) to[k * g.in_c + c] = from[c * g.out_c + k];
      }
    }
  });
}

// Patches of an image overlap in dx, so one slot owns an image.
template <class T>
Chunks grad_input_slots(const ConvGeometry& g) {
  return divide_into_slots(g.batch, flops(g), block_bytes<T>(g, block_rows<T>(g)));
}

template <class T>
Chunks grad_kernel_slots(const ConvGeometry& g) {
  const Index rows = rows_summed<T>(g);
  const Index partial_bytes = depth_of(g) * g.out_c * static_cast<Index>(sizeof(T));
  return divide_into_slots((all_rows(g) + rows - 1) / rows, flops(g), block_bytes<T>(g, rows) + partial_bytes);
}

// The taps of a kernel row inside the image; the first tap is at pixel `start`. taps-inl.h has the vectorized version,
// which scalar code cannot call.
struct Range {
  Index begin, end;
};
Range taps_inside(Index start, Index taps, Index dilation, Index size) {
  const Index begin = start >= 0 ? 0 : std::min(taps, (-start + dilation - 1) / dilation);
  const Index end = start >= size ? 0 : std::min(taps, (size - start + dilation - 1) / dilation);
  return {begin, std::max(begin, end)};
}

// Calls visit(row, line, span, pixel) for each row (an output pixel) and each kernel line, counted over depth and
// height. `span`: the taps inside the image. `pixel`: the index in x of channel 0 of tap 0, which may be outside.
template <class Visit>
void for_kernel_lines(const ConvGeometry& g, Index begin, Index end, const Visit& visit) {
  for (Index row = begin; row < end; ++row) {
    const Index column = row % g.out_w, line = row / g.out_w % g.out_h, plane = row / (g.out_w * g.out_h) % g.out_d;
    const Index image = row / (g.out_w * g.out_h * g.out_d);
    const Index left = column * g.stride_w - g.pad_left;
    const Range span = taps_inside(left, g.k_w, g.dilation_w, g.in_w);
    for (Index e = 0; e < g.k_d; ++e) {
      const Index front = plane * g.stride_d - g.pad_front + e * g.dilation_d;
      for (Index a = 0; a < g.k_h; ++a) {
        const Index top = line * g.stride_h - g.pad_top + a * g.dilation_h;
        const bool outside = front < 0 || front >= g.in_d || top < 0 || top >= g.in_h;
        visit(row - begin, e * g.k_h + a, outside ? Range{0, 0} : span,
              (((image * g.in_d + front) * g.in_h + top) * g.in_w + left) * g.in_c);
      }
    }
  }
}

template <class T>
void fill_patches(const ConvGeometry& g, const T* x, Index begin, Index end, T* patches) {
  const Index width = g.k_w * g.in_c;
  for_kernel_lines(g, begin, end, [&](Index row, Index line, Range span, Index pixel) {
    T* out = patches + (row * g.k_d * g.k_h + line) * width;
    std::fill(out, out + span.begin * g.in_c, T(0));
    std::fill(out + span.end * g.in_c, out + width, T(0));
    if (g.dilation_w == 1) {
      std::copy(x + pixel + span.begin * g.in_c, x + pixel + span.end * g.in_c, out + span.begin * g.in_c);
      return;
    }
    for (Index b = span.begin; b < span.end; ++b) {
      const T* tap = x + pixel + b * g.dilation_w * g.in_c;
      std::copy(tap, tap + g.in_c, out + b * g.in_c);
    }
  });
}

template <class T>
void add_patches(const ConvGeometry& g, const T* patches, Index begin, Index end, T* dx) {
  const Index width = g.k_w * g.in_c;
  for_kernel_lines(g, begin, end, [&](Index row, Index line, Range span, Index pixel) {
    const T* from = patches + (row * g.k_d * g.k_h + line) * width;
    if (g.dilation_w == 1) {
      T* to = dx + pixel;
      for (Index i = span.begin * g.in_c; i < span.end * g.in_c; ++i) to[i] += from[i];
      return;
    }
    for (Index b = span.begin; b < span.end; ++b) {
      T* tap = dx + pixel + b * g.dilation_w * g.in_c;
      for (Index c = 0; c < g.in_c; ++c) tap[c] += from[b * g.in_c + c];
    }
  });
}

// Returns the matrix of patches: the image if is_pointwise, otherwise `matrix`, filled.
template <class T>
const T* all_patches(const ConvGeometry& g, const T* x, T* matrix) {
  if (is_pointwise(g)) return x;
  const Index depth = depth_of(g);
  parallel_for(all_rows(g), 5 + 0.2 * static_cast<double>(depth),
               [&](Index begin, Index end) { fill_patches(g, x, begin, end, matrix + begin * depth); });
  return matrix;
}

// dx from the gradients of all patches. Images are independent.
template <class T>
void add_all_patches(const ConvGeometry& g, const T* patches, T* dx, const Epilogue* epilogue) {
  const Index image_size = g.in_d * g.in_h * g.in_w * g.in_c, rows = g.out_d * g.out_h * g.out_w, depth = depth_of(g);
  parallel_for(g.batch, 0.3 * static_cast<double>(rows * depth + image_size), [&](Index begin, Index end) {
    std::fill(dx + begin * image_size, dx + end * image_size, T(0));
    add_patches(g, patches + begin * rows * depth, begin * rows, end * rows, dx);
    if (epilogue != nullptr) epilogue->run(begin * image_size, end * image_size);
  });
}

template <class T>
T* slot_block(const ConvGeometry& g, Index rows, void* scratch, Index slot) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(scratch) + slot * block_bytes<T>(g, rows));
}

}  // namespace

template <class T>
std::size_t forward_scratch_bytes(const ConvGeometry& g) {
  if (at_once<T>(g)) return static_cast<std::size_t>(matrix_bytes<T>(g));
  return static_cast<std::size_t>(packed_bytes<T>(depth_of(g), g.out_c) +
                                  forward_slots<T>(g).count * block_bytes<T>(g, block_rows<T>(g)));
}

template <class T>
void forward(const ConvGeometry& g, const T* x, const T* w, T* y, void* scratch, const Epilogue* epilogue) {
  const Index rows = block_rows<T>(g), depth = depth_of(g);
  if (at_once<T>(g))
    return gemm_with_epilogue(epilogue, Trans::kNo, Trans::kNo, all_rows(g), g.out_c, depth,
                              all_patches(g, x, static_cast<T*>(scratch)), depth, w, g.out_c, y);
  T* const kernel = static_cast<T*>(scratch);
  pack_matrix(Trans::kNo, depth, g.out_c, w, g.out_c, kernel);
  void* const blocks = static_cast<std::byte*>(scratch) + packed_bytes<T>(depth, g.out_c);
  parallel_chunks(forward_slots<T>(g), [&](Index slot, Index first, Index last) {
    T* patches = slot_block<T>(g, rows, blocks, slot);
    for (Index block = first; block < last; ++block) {
      const Index begin = block * rows, end = std::min(begin + rows, all_rows(g));
      fill_patches(g, x, begin, end, patches);
      packed_product_serial(end - begin, g.out_c, depth, patches, depth, kernel, y + begin * g.out_c, g.out_c);
      if (epilogue != nullptr) epilogue->run(begin * g.out_c, end * g.out_c);
    }
  });
}

template <class T>
std::size_t grad_input_scratch_bytes(const ConvGeometry& g) {
  if (is_convolution(g))
    return static_cast<std::size_t>(flipped_kernel_bytes<T>(g)) + forward_scratch_bytes<T>(grad_input_as_forward(g));
  if (at_once<T>(g)) return static_cast<std::size_t>(matrix_bytes<T>(g));
  return static_cast<std::size_t>(packed_bytes<T>(g.out_c, depth_of(g)) +
                                  grad_input_slots<T>(g).count * block_bytes<T>(g, block_rows<T>(g)));
}

template <class T>
void grad_input(const ConvGeometry& g, const T* dy, const T* w, T* dx, void* scratch, const Epilogue* epilogue) {
  if (is_convolution(g)) {
    auto* kernel = static_cast<T*>(scratch);
    flip_kernel(g, w, kernel);
    return forward(grad_input_as_forward(g), dy, kernel, dx,
                   static_cast<std::byte*>(scratch) + flipped_kernel_bytes<T>(g), epilogue);
  }
  const Index rows = block_rows<T>(g), depth = depth_of(g);
  if (at_once<T>(g)) {
    T* patches = is_pointwise(g) ? dx : static_cast<T*>(scratch);
    gemm_with_epilogue(is_pointwise(g) ? epilogue : nullptr, Trans::kNo, Trans::kYes, all_rows(g), depth, g.out_c, dy,
                       g.out_c, w, g.out_c, patches);
    if (!is_pointwise(g)) add_all_patches(g, patches, dx, epilogue);
    return;
  }
  const Index image_size = g.in_d * g.in_h * g.in_w * g.in_c, image_rows = g.out_d * g.out_h * g.out_w;
  T* const kernel = static_cast<T*>(scratch);
  pack_matrix(Trans::kYes, g.out_c, depth, w, g.out_c, kernel);
  void* const blocks = static_cast<std::byte*>(scratch) + packed_bytes<T>(g.out_c, depth);
  parallel_chunks(grad_input_slots<T>(g), [&](Index slot, Index first, Index last) {
    T* patches = slot_block<T>(g, rows, blocks, slot);
    std::fill(dx + first * image_size, dx + last * image_size, T(0));
    for (Index begin = first * image_rows; begin < last * image_rows; begin += rows) {
      const Index end = std::min(begin + rows, last * image_rows);
      packed_product_serial(end - begin, depth, g.out_c, dy + begin * g.out_c, g.out_c, kernel, patches, depth);
      add_patches(g, patches, begin, end, dx);
    }
    if (epilogue != nullptr) epilogue->run(first * image_size, last * image_size);
  });
}

template <class T>
std::size_t grad_kernel_scratch_bytes(const ConvGeometry& g) {
  if (sums_at_once<T>(g))
    return static_cast<std::size_t>(matrix_bytes<T>(g)) +
           rows_product_scratch(all_rows(g), depth_of(g), g.out_c, sizeof(T));
  const Chunks slots = grad_kernel_slots<T>(g);
  const Index partials = slots.count > 1 ? slots.count * depth_of(g) * g.out_c * static_cast<Index>(sizeof(T)) : 0;
  return static_cast<std::size_t>(slots.count * block_bytes<T>(g, rows_summed<T>(g)) + partials);
}

template <class T>
void grad_kernel(const ConvGeometry& g, const T* x, const T* dy, T* dw, void* scratch) {
  const Index rows = rows_summed<T>(g), depth = depth_of(g), size = depth * g.out_c;
  if (sums_at_once<T>(g)) {
    const T* patches = all_patches(g, x, static_cast<T*>(scratch));
    return rows_product<T>({all_rows(g), depth, g.out_c, patches, dy, dw},
                           static_cast<std::byte*>(scratch) + matrix_bytes<T>(g));
  }
  const Chunks slots = grad_kernel_slots<T>(g);
  T* partials = slots.count > 1 ? slot_block<T>(g, rows, scratch, slots.count) : dw;
  parallel_chunks(slots, [&](Index slot, Index first, Index last) {
    T* patches = slot_block<T>(g, rows, scratch, slot);
    for (Index block = first; block < last; ++block) {
      const Index begin = block * rows, end = std::min(begin + rows, all_rows(g));
      fill_patches(g, x, begin, end, patches);
      gemm_serial(Trans::kYes, Trans::kNo, depth, g.out_c, end - begin, T(1), patches, depth, dy + begin * g.out_c,
                  g.out_c, block == first ? T(0) : T(1), partials + slot * size, g.out_c);
    }
  });
  if (slots.count == 0) std::fill(dw, dw + size, T(0));  // an empty batch
  if (slots.count > 1) add_partials(partials, slots.count, size, dw);
}

template <class T>
std::optional<std::size_t> parts_scratch_bytes(const ConvGeometry& g, std::span<const Index> images) {
  if (matrix_bytes<T>(g) > kMatrixOfPartsBytes) return std::nullopt;
  std::vector<Index> rows;
  for (const Index count : images) rows.push_back(all_rows(with_images(g, count)));
  if (!fits_parts<T>(rows)) return std::nullopt;
  for (std::size_t i = 1; i < images.size(); ++i) {
    const ConvGeometry part = with_images(g, images[i] - images[i - 1]);
    if (!sums_at_once<T>(part)) return std::nullopt;
    // A part alone is one product.
    SYNCLINE_CHECK(rows_product_scratch(all_rows(part), depth_of(g), g.out_c, sizeof(T)) == 0);
  }
  return static_cast<std::size_t>(matrix_bytes<T>(g)) + rows.size() * sizeof(Index);
}

template <class T>
void grad_kernel_by_parts(const ConvGeometry& g, std::span<const Index> images, const T* x, const T* dy, T* dw,
                          void* scratch) {
  const std::span rows(reinterpret_cast<Index*>(static_cast<std::byte*>(scratch) + matrix_bytes<T>(g)), images.size());
  std::transform(images.begin(), images.end(), rows.begin(),
                 [&](Index count) { return all_rows(with_images(g, count)); });
  const T* patches = all_patches(g, x, static_cast<T*>(scratch));
  gemm_by_parts<T>(Trans::kYes, Trans::kNo, depth_of(g), g.out_c, rows, patches, depth_of(g), dy, g.out_c, dw, g.out_c);
}

#define SYNCLINE_INSTANTIATE_LOWERED(T)                                                                    \
  template std::size_t forward_scratch_bytes<T>(const ConvGeometry&);                                      \
  template std::size_t grad_input_scratch_bytes<T>(const ConvGeometry&);                                   \
  template std::size_t grad_kernel_scratch_bytes<T>(const ConvGeometry&);                                  \
  template std::optional<std::size_t> parts_scratch_bytes<T>(const ConvGeometry&, std::span<const Index>); \
  template void forward<T>(const ConvGeometry&, const T*, const T*, T*, void*, const Epilogue*);           \
  template void grad_input<T>(const ConvGeometry&, const T*, const T*, T*, void*, const Epilogue*);        \
  template void grad_kernel<T>(const ConvGeometry&, const T*, const T*, T*, void*);                        \
  template void grad_kernel_by_parts<T>(const ConvGeometry&, std::span<const Index>, const T*, const T*, T*, void*);
SYNCLINE_INSTANTIATE_LOWERED(float)
SYNCLINE_INSTANTIATE_LOWERED(double)
#undef SYNCLINE_INSTANTIATE_LOWERED

}  // namespace syncline::kernels::conv::im2col
