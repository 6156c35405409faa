// Random streams with random access: element i of a stream is a function of the stream and i only.
//
// Counter b of Philox gives four words, numbered 4b ... 4b + 3. A 32-bit element uses one word, a 64-bit element two; a
// pair of normal numbers uses the words of both. Thread-safe; allocates nothing; throws nothing.
#pragma once

#include <cstdint>

#include "ops/graph/op.h"
#include "ops/kernels/parallel.h"
#include "syncline/backend/random.h"

namespace syncline {

struct Stream {
  std::uint64_t key = 0;
  std::uint64_t step = 0;
};

Stream stream_of(const RandomOp& op, std::uint64_t step);

// Draws words [4 * first_block, 4 * (first_block + blocks)).
void draw_words(const Stream& stream, std::uint64_t first_block, std::int64_t blocks, std::uint32_t* words);

// Draw elements [first, first + n). Mask: word >= threshold. Uniform: in [0, 1). Normal: mean 0, variance 1.
void draw_mask(const Stream& stream, std::uint64_t first, std::int64_t n, std::uint32_t threshold, bool* out);
void draw_uniform(const Stream& stream, std::uint64_t first, std::int64_t n, float* out);
void draw_uniform(const Stream& stream, std::uint64_t first, std::int64_t n, double* out);
void draw_normal(const Stream& stream, std::uint64_t first, std::int64_t n, float* out);
void draw_normal(const Stream& stream, std::uint64_t first, std::int64_t n, double* out);

// Calls draw(first, n, out) for the runs of output 0 that are contiguous in the global value; `first` is the global
// index of a run. The pool executes the calls; `cost` is in nanoseconds per element.
template <class T, class Draw>
void for_global_runs(const KernelArgs& k, double cost, Draw draw) {
  const Shape& shape = k.out_shape();
  T* out = k.output<T>();
  std::int64_t inner = 1, rows = 1;
  if (shape.ndim() > 0) {
    inner = shape.product(k.slice.axis + 1, shape.ndim());
    rows = shape[k.slice.axis];
  }
  const std::int64_t run = rows * inner;
  const std::int64_t global_run = std::max(k.slice.size, k.slice.begin + rows) * inner;
  kernels::parallel_for(shape.size(), cost, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t outer = begin / run, within = begin % run;
      const std::int64_t n = std::min(run - within, end - begin);
      draw(static_cast<std::uint64_t>(outer * global_run + k.slice.begin * inner + within), n, out + begin);
      begin += n;
    }
  });
}

}  // namespace syncline
