#include "ops/kernels/copy/permute.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ops/kernels/copy/transpose_square.h"
#include "ops/kernels/parallel.h"

namespace syncline::kernels {
namespace {

using Index = std::int64_t;

constexpr Index kTile = 64;  // rows of a plane per tile
constexpr double kNanosecondsPerByte = 0.1;
constexpr std::size_t kStreamedBytes = std::size_t{8} << 20;  // larger results bypass the caches

// Axes after merging: adjacent axes with compatible strides become one; axes of one element are dropped.
struct Geometry {
  std::array<Index, 17> dim{}, stride{};
  int ndim = 0;
};

Geometry merged(std::span<const Index> dims, std::span<const Index> stride) {
  Geometry g;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 1) continue;
    const auto last = static_cast<std::size_t>(g.ndim - 1);
    if (g.ndim > 0 && g.stride[last] == stride[axis] * dims[axis]) {
      g.dim[last] *= dims[axis];
      g.stride[last] = stride[axis];
    } else {
      g.dim[static_cast<std::size_t>(g.ndim)] = dims[axis];
      g.stride[static_cast<std::size_t>(g.ndim++)] = stride[axis];
    }
  }
  if (g.ndim == 0) g.dim[0] = g.stride[0] = g.ndim = 1;
  return g;
}

// A plane consists of the last axis, along which the output is contiguous, and the axis along which the input is
// contiguous or nearly so. The copy walks over the other axes. Tiles of a plane reuse the cache lines of both sides.
struct Planes {
  Geometry walked;
  Index rows = 1, columns = 1;  // of a plane: of `across` and of the last axis
  Index row_in = 0, row_out = 0, column_in = 1;
  Index count = 1;  // of planes
  std::array<Index, 17> walked_out{};
};

Planes planes_of(const Geometry& g) {
  Planes p;
  const int last = g.ndim - 1;
  p.columns = g.dim[static_cast<std::size_t>(last)];
  p.column_in = g.stride[static_cast<std::size_t>(last)];
  int across = last - 1;
  for (int axis = 0; axis < last; ++axis)
    if (g.stride[static_cast<std::size_t>(axis)] == 1 && p.column_in != 1) across = axis;
  Index out_stride = p.columns;
  std::array<Index, 17> out{};
  for (int axis = last - 1; axis >= 0; --axis) {
    out[static_cast<std::size_t>(axis)] = out_stride;
    out_stride *= g.dim[static_cast<std::size_t>(axis)];
  }
  for (int axis = 0; axis < last; ++axis) {
    const auto i = static_cast<std::size_t>(axis), next = static_cast<std::size_t>(p.walked.ndim);
    if (axis == across) {
      p.rows = g.dim[i];
      p.row_in = g.stride[i];
      p.row_out = out[i];
      continue;
    }
    p.walked.dim[next] = g.dim[i];
    p.walked.stride[next] = g.stride[i];
    p.walked_out[next] = out[i];
    ++p.walked.ndim;
    p.count *= g.dim[i];
  }
  return p;
}

template <class T>
void copy_rows(const Planes& p, const T* in, T* out, Index begin, Index end) {
  for (Index row = begin; row < end; ++row) {
    const T* from = in + row * p.row_in;
    T* to = out + row * p.row_out;
    if (p.column_in == 1) std::memcpy(to, from, static_cast<std::size_t>(p.columns) * sizeof(T));
    else if (p.column_in == 0) std::fill_n(to, p.columns, *from);
    else
      for (Index column = 0; column < p.columns; ++column) to[column] = from[column * p.column_in];
  }
}

template <class T>
void copy_elements(const Planes& p, const T* in, T* out, Index begin, Index end, Index left, Index right) {
  for (Index row = begin; row < end; ++row)
    for (Index column = left; column < right; ++column) out[row * p.row_out + column] = in[column * p.column_in + row];
}

// Copies one square at a time, so only its cache lines are in use on either side. With power-of-two strides, more lines
// would evict each other.
template <class T>
void copy_tiles(const Planes& p, const T* in, T* out, Index begin, Index end) {
  Index row = begin;
  if constexpr (sizeof(T) == sizeof(std::uint32_t)) {
    const Index squares = p.columns / kSquare;
    const bool stream = static_cast<std::size_t>(p.count * p.rows * p.columns) * sizeof(T) >= kStreamedBytes;
    for (; row + kSquare <= end; row += kSquare) {
      transpose_squares(in + row, p.column_in, out + row * p.row_out, p.row_out, squares, stream);
      copy_elements(p, in, out, row, row + kSquare, squares * kSquare, p.columns);
    }
  }
  for (; row < end; row += kSquare)
    for (Index left = 0; left < p.columns; left += kSquare)
      copy_elements(p, in, out, row, std::min(end, row + kSquare), left, std::min(p.columns, left + kSquare));
}

template <class T>
void copy_planes(const Planes& p, const T* in, T* out) {
  const bool tiled = p.row_in == 1 && p.column_in != 1 && p.column_in != 0;
  const Index bands = (p.rows + kTile - 1) / kTile;
  const double cost = kNanosecondsPerByte * static_cast<double>(std::min(p.rows, kTile) * p.columns) * sizeof(T);
  parallel_for(p.count * bands, cost, [&](Index first, Index last) {
    for (Index item = first; item < last; ++item) {
      const Index begin = item % bands * kTile, end = std::min(p.rows, begin + kTile);
      Index from = 0, to = 0, index = item / bands;
      for (int axis = p.walked.ndim - 1; axis >= 0; --axis) {
        const auto i = static_cast<std::size_t>(axis);
        from += index % p.walked.dim[i] * p.walked.stride[i];
        to += index % p.walked.dim[i] * p.walked_out[i];
        index /= p.walked.dim[i];
      }
      if (tiled) copy_tiles(p, in + from, out + to, begin, end);
      else copy_rows(p, in + from, out + to, begin, end);
    }
  });
}

}  // namespace

void strided_copy(std::span<const Index> dims, std::span<const Index> stride, std::size_t element_size, const void* in,
                  void* out) {
  for (const Index dim : dims)
    if (dim == 0) return;
  const Planes p = planes_of(merged(dims, stride));
  auto copy = [&]<class T>(T) { copy_planes(p, static_cast<const T*>(in), static_cast<T*>(out)); };
  if (element_size == 1) copy(std::uint8_t{});
  else if (element_size == 2) copy(std::uint16_t{});
  else if (element_size == 4) copy(std::uint32_t{});
  else copy(std::uint64_t{});
}

}  // namespace syncline::kernels
