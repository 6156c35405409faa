#include "ops/reduce/kernel.h"

#include <algorithm>
#include <array>
#include <memory>

#include "ops/kernels/parallel.h"
#include "ops/kernels/part_tree.h"

namespace syncline {
namespace {

constexpr std::int64_t kWideColumns = kWideRow;  // from this width on, threads share the columns
constexpr double kNanosecondsPerByte = 0.06;
constexpr std::int64_t kTile = kMostInUnit;  // elements that a program computes at once, within the second-level cache

struct Axis {
  std::int64_t size = 1, stride = 1;
  bool reduced = false;
};

// Merges neighbouring axes of one kind (kept or reduced). The last one or two form the tile; the others are walked.
struct Geometry {
  std::array<Axis, kMaxDims> walked;
  int count = 0;
  std::int64_t m = 1, w = 1;             // the tile
  std::int64_t blocks = 1, repeats = 1;  // products of the kept and of the reduced walked axes
  std::int64_t size_of_element = 1;
  std::int64_t base = 0;  // the first element
  bool has_gaps = false;  // blocks do not lie one behind the other

  // Offset of the index-th combination of the reduced walked axes if `reduced`, otherwise of the kept ones.
  std::int64_t offset(std::int64_t index, bool reduced) const {
    std::int64_t at = 0;
    for (int i = count - 1; i >= 0 && index > 0; --i) {
      const Axis& axis = walked[static_cast<std::size_t>(i)];
      if (axis.reduced != reduced) continue;
      at += index % axis.size * axis.stride;
      index /= axis.size;
    }
    return at;
  }
  double cost(std::int64_t elements) const {
    return kNanosecondsPerByte * static_cast<double>(elements * size_of_element);
  }
};

// Elements [begin, end) along an axis.
struct Range {
  int axis = -1;
  std::int64_t begin = 0, end = 0;
};

// Of the elements in a range, if its axis is not negative. That axis never merges with those before it, so the order of
// a part's operations does not depend on the other parts.
Geometry geometry_of(const Shape& shape, const AxisMask& mask, DType dtype, const Range& range = {}) {
  Geometry g;
  g.size_of_element = static_cast<std::int64_t>(size_of(dtype));
  std::int64_t stride = shape.size();
  for (int axis = 0; axis < shape.ndim(); ++axis) {
    const bool cut = axis == range.axis;
    if (shape[axis] > 0) stride /= shape[axis];
    if (cut) {
      g.base = range.begin * stride;
      g.has_gaps = g.count > 0;
    }
    const std::int64_t size = cut ? range.end - range.begin : shape[axis];
    if (size == 1 && !cut) continue;
    Axis* last = g.count > 0 ? &g.walked[static_cast<std::size_t>(g.count - 1)] : nullptr;
    if (last != nullptr && last->reduced == mask[axis] && !cut) *last = {last->size * size, stride, last->reduced};
    else g.walked[static_cast<std::size_t>(g.count++)] = {size, stride, mask[axis]};
  }
  if (g.count > 0 && !g.walked[static_cast<std::size_t>(g.count - 1)].reduced)
    g.w = g.walked[static_cast<std::size_t>(--g.count)].size;
  if (g.count > 0) g.m = g.walked[static_cast<std::size_t>(--g.count)].size;
  for (int i = 0; i < g.count; ++i) {
    const Axis& axis = g.walked[static_cast<std::size_t>(i)];
    (axis.reduced ? g.repeats : g.blocks) *= axis.size;
  }
  return g;
}

// Chunks of one block's reduced rows: of its repeats if there are several, otherwise of the rows of its tile.
kernels::Chunks row_chunks(const Geometry& g) {
  return g.repeats > 1 ? kernels::fixed_chunks(g.repeats, g.cost(g.m * g.w)) : kernels::fixed_chunks(g.m, g.cost(g.w));
}

// Blocks whose chunks run in one parallel loop.
std::int64_t blocks_at_once(const Geometry& g, const kernels::Chunks& chunks) {
  return std::min(g.blocks, std::max<std::int64_t>(kernels::kMaxChunks / chunks.count, 1));
}

constexpr std::size_t kMostReduced = kernels::kMostReduced;

// Some elements of each operand that a program computes. The operands do not start at equal places modulo a page,
// where loads would wait for stores of another operand.
struct Tile {
  alignas(64) std::byte at[kMostReduced][kTile * sizeof(double) + 5 * 64];
};

using Operands = std::array<const std::byte*, kMostReduced>;
using Sums = std::array<std::byte*, kMostReduced>;

// One or several reductions of one kind over the same axes. `to`: where their results begin; null: in the outputs.
class Job {
 public:
  Job(const ReduceLoops& loops, const Geometry& g, const KernelArgs& k, const kernels::FusedProgram* program,
      const Sums* to = nullptr)
      : loops_(loops),
        g_(g),
        k_(k),
        program_(program),
        count_(program == nullptr ? 1 : program->reduced.size()),
        stored_(k.out_meta.size() - count_) {
    for (std::size_t i = 0; i < count_; ++i)
      to_[i] = to != nullptr ? (*to)[i] : k_.output<std::byte>(static_cast<int>(stored_ + i));
    SYNCLINE_CHECK(program_ == nullptr || (g_.w < kWideColumns && count_ <= kMostReduced && stored_ <= kMostStored));
  }

  void run() const {
    if (g_.w >= kWideColumns) shared_columns();
    else shared_rows();
  }

 private:
  static constexpr std::size_t kMostStored = kernels::kFusedRegisters;

  std::byte* output(std::size_t i, std::int64_t element) const { return to_[i] + element * loops_.bytes; }
  Sums outputs(std::int64_t element) const {
    Sums at{};
    for (std::size_t i = 0; i < count_; ++i) at[i] = output(i, element);
    return at;
  }

  // Elements [begin, begin + n) of each operand; with a program, n is at most kTile. Stores those of the program's
  // other outputs.
  Operands operands(std::int64_t begin, std::int64_t n, Tile* tile) const {
    if (program_ == nullptr) return {k_.input<std::byte>(0) + begin * g_.size_of_element};
    Operands x{};
    void* out[kMostStored + kMostReduced];
    std::copy_n(k_.out, stored_, out);
    for (std::size_t i = 0; i < count_; ++i) {
      const auto& [to, stored, from] = program_->reduced[i];
      if (to < 0) {
        x[i] = k_.input<std::byte>(from) + begin * g_.size_of_element;
      } else if (stored) {
        x[i] = k_.output<std::byte>(to) + begin * g_.size_of_element;
      } else {
        x[i] = tile->at[i];
        out[to] = tile->at[i] - begin * g_.size_of_element;  // where element 0 would lie
      }
    }
    kernels::run_fused(*program_, k_.in, out, begin, begin + n);  // on several threads if this one is not in a loop
    return x;
  }

  // Memory for computed operands; null without a program. Only one reduction runs on a thread at a time.
  Tile* tile() const {
    if (program_ == nullptr) return nullptr;
    thread_local const auto of_thread = std::make_unique_for_overwrite<Tile>();
    return of_thread.get();
  }

  void start(const Sums& acc, std::int64_t columns) const {
    for (std::size_t i = 0; i < count_; ++i) loops_.start(acc[i], columns);
  }

  // Folds `m` rows that begin at an element.
  void fold(std::int64_t begin, std::int64_t m, const Sums& acc, Tile* tile) const {
    const std::int64_t unit = loops_.unit(m, g_.w);
    const std::int64_t part = program_ == nullptr ? m : kTile / (unit * g_.w) * unit;
    for (std::int64_t at = 0; at < m; at += part) {
      const std::int64_t rows = std::min(part, m - at);
      const Operands x = operands(begin + at * g_.w, rows * g_.w, tile);
      for (std::size_t i = 0; i < count_; ++i) loops_.columns(x[i], rows, g_.w, g_.w, acc[i], m);
    }
  }

  // A block, over the repeats [first, last).
  void reduce_block(std::int64_t block, std::int64_t first, std::int64_t last, const Sums& acc, Tile* tile) const {
    const std::int64_t at = g_.base + g_.offset(block, false);
    start(acc, g_.w);
    for (std::int64_t r = first; r < last; ++r) fold(at + g_.offset(r, true), g_.m, acc, tile);
  }

  // Blocks [begin, end) whose elements lie one behind the other, as many at once as fit a tile.
  void reduce_small_blocks(std::int64_t begin, std::int64_t end, Tile* tile) const {
    const std::int64_t size = g_.m * g_.w;
    for (std::int64_t b = begin; b < end;) {
      const std::int64_t n = std::min(end - b, kTile / size);
      const Operands x = operands(g_.base + b * size, n * size, tile);
      const Sums acc = outputs(b * g_.w);
      start(acc, n * g_.w);
      for (std::size_t i = 0; i < count_; ++i)
        for (std::int64_t at = 0; at < n; ++at)
          loops_.columns(x[i] + at * size * g_.size_of_element, g_.m, g_.w, g_.w, acc[i] + at * g_.w * loops_.bytes,
                         g_.m);
      b += n;
    }
  }

  void whole_blocks() const {
    const std::int64_t elements = g_.repeats * g_.m * g_.w;
    const double cost = g_.cost(elements) + (program_ == nullptr ? 0 : program_->cost * static_cast<double>(elements));
    kernels::parallel_for(g_.blocks, cost, [&](std::int64_t begin, std::int64_t end) {
      if (elements <= kTile && g_.repeats == 1 && !g_.has_gaps) return reduce_small_blocks(begin, end, tile());
      for (std::int64_t b = begin; b < end; ++b) reduce_block(b, 0, g_.repeats, outputs(b * g_.w), tile());
    });
  }

  // Of an operand in memory.
  void shared_columns() const {
    for (std::int64_t b = 0; b < g_.blocks; ++b)
      kernels::parallel_for(g_.w, g_.cost(g_.repeats * g_.m), [&](std::int64_t begin, std::int64_t end) {
        const std::byte* x = k_.input<std::byte>(0) + (g_.base + g_.offset(b, false) + begin) * g_.size_of_element;
        std::byte* acc = output(0, b * g_.w + begin);
        loops_.start(acc, end - begin);
        for (std::int64_t r = 0; r < g_.repeats; ++r)
          loops_.columns(x + g_.offset(r, true) * g_.size_of_element, g_.m, end - begin, g_.w, acc, g_.m);
      });
  }

  // The partial results of the index-th of `count` chunks; those of an operand's chunks lie one behind the other.
  Sums partials(std::int64_t count, std::int64_t index) const {
    Sums at{};
    for (std::size_t i = 0; i < count_; ++i)
      at[i] =
          static_cast<std::byte*>(k_.scratch) + (static_cast<std::int64_t>(i) * count + index) * g_.w * loops_.bytes;
    return at;
  }

  void reduce_chunk(std::int64_t block, std::int64_t begin, std::int64_t end, const Sums& acc) const {
    if (g_.repeats > 1) return reduce_block(block, begin, end, acc, tile());
    start(acc, g_.w);
    fold(g_.base + g_.offset(block, false) + begin * g_.w, end - begin, acc, tile());
  }

  void shared_rows() const {
    const kernels::Chunks chunks = row_chunks(g_);
    if (chunks.count <= 1) return whole_blocks();
    const std::int64_t group = blocks_at_once(g_, chunks);
    for (std::int64_t first = 0; first < g_.blocks; first += group) {
      const std::int64_t blocks = std::min(group, g_.blocks - first), count = blocks * chunks.count;
      kernels::parallel_chunks({count, 1, count}, [&](std::int64_t index, std::int64_t, std::int64_t) {
        const std::int64_t chunk = index % chunks.count;
        reduce_chunk(first + index / chunks.count, chunks.begin(chunk), chunks.end(chunk), partials(count, index));
      });
      for (std::int64_t b = 0; b < blocks; ++b) {
        const Sums from = partials(count, b * chunks.count);
        start(outputs((first + b) * g_.w), g_.w);
        for (std::size_t i = 0; i < count_; ++i)
          loops_.combine(from[i], chunks.count, g_.w, output(i, (first + b) * g_.w));
      }
    }
  }

  const ReduceLoops& loops_;
  const Geometry& g_;
  const KernelArgs& k_;
  const kernels::FusedProgram* const program_;  // or null
  const std::size_t count_, stored_;            // reductions, and outputs before theirs
  Sums to_{};
};

// The chunks of a block that threads share if there are few blocks.
std::size_t chunk_scratch(const ReduceLoops& loops, const Geometry& g) {
  if (g.w >= kWideColumns) return 0;
  const kernels::Chunks chunks = row_chunks(g);
  if (chunks.count <= 1) return 0;
  return static_cast<std::size_t>(blocks_at_once(g, chunks) * chunks.count * g.w * loops.bytes);
}

// Reduces the parts of the operands one by one, and combines the results along the tree.
class PartsJob {
 public:
  PartsJob(const ReduceLoops& loops, const AxisMask& mask, const KernelArgs& k, const kernels::FusedProgram* program)
      : loops_(loops),
        mask_(mask),
        k_(k),
        program_(program),
        count_(program == nullptr ? 1 : program->reduced.size()),
        stored_(k.out_meta.size() - count_),
        outputs_(k.out_shape(static_cast<int>(stored_)).size() *
                 static_cast<std::int64_t>(size_of(k.out_dtype(static_cast<int>(stored_)))) / loops.bytes),
        kept_(kernels::sums_kept(static_cast<std::int64_t>(k.parts.count()))) {}

  void run() {
    const auto parts = static_cast<std::int64_t>(k_.parts.count());
    kernels::sum_parts(
        parts, [&](std::int64_t part, std::int64_t place) { reduce_part(part, sums_at(place)); },
        [&](std::int64_t to, std::int64_t from) { combine(sums_at(to), sums_at(from)); });
  }

 private:
  // The place 0 is in the outputs.
  Sums sums_at(std::int64_t place) const {
    Sums at{};
    for (std::size_t i = 0; i < count_; ++i)
      at[i] = place == 0 ? k_.output<std::byte>(static_cast<int>(stored_ + i))
                         : static_cast<std::byte*>(k_.scratch) +
                               (static_cast<std::int64_t>(i) * (kept_ - 1) + place - 1) * outputs_ * loops_.bytes;
    return at;
  }

  void reduce_part(std::int64_t part, const Sums& to) const {
    const auto p = static_cast<std::size_t>(part);
    const Range range{k_.parts.axis, k_.parts.begin[p], k_.parts.begin[p + 1]};
    const Geometry g = geometry_of(k_.in_shape(0), mask_, k_.in_dtype(0), range);
    if (range.begin == range.end || k_.in_shape(0).size() == 0) {
      for (std::size_t i = 0; i < count_; ++i) loops_.start(to[i], outputs_);
      return;
    }
    KernelArgs own = k_;
    own.scratch =
        static_cast<std::byte*>(k_.scratch) + static_cast<std::int64_t>(count_) * (kept_ - 1) * outputs_ * loops_.bytes;
    Job(loops_, g, own, program_, &to).run();
  }

  void combine(const Sums& to, const Sums& from) const {
    for (std::size_t i = 0; i < count_; ++i)
      kernels::parallel_for(outputs_, kNanosecondsPerByte * 3 * static_cast<double>(loops_.bytes),
                            [&](std::int64_t begin, std::int64_t end) {
                              loops_.combine(from[i] + begin * loops_.bytes, 1, end - begin,
                                             to[i] + begin * loops_.bytes);
                            });
  }

  const ReduceLoops& loops_;
  const AxisMask& mask_;
  const KernelArgs& k_;
  const kernels::FusedProgram* const program_;  // or null
  const std::size_t count_, stored_;            // as in Job
  const std::int64_t outputs_, kept_;           // results of an operand; results kept at a time
};

}  // namespace

void reduce(const ReduceLoops& loops, const AxisMask& mask, const KernelArgs& k, const kernels::FusedProgram* program) {
  if (!k.parts.empty() && mask[k.parts.axis]) return PartsJob(loops, mask, k, program).run();
  if (k.in_shape(0).size() == 0) {
    for (std::size_t i = 0; i < k.out_meta.size(); ++i)
      loops.start(k.out[i],
                  k.out_meta[i].shape.size() * static_cast<std::int64_t>(size_of(k.out_meta[i].dtype)) / loops.bytes);
    return;
  }
  const Geometry g = geometry_of(k.in_shape(0), mask, k.in_dtype(0));
  Job(loops, g, k, program).run();
}

std::size_t reduce_scratch(const ReduceLoops& loops, const AxisMask& mask, const Meta& in, const RowParts& parts) {
  if (parts.empty() || !mask[parts.axis])
    return in.shape.size() == 0 ? 0 : chunk_scratch(loops, geometry_of(in.shape, mask, in.dtype));
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < parts.count(); ++i)
    bytes = std::max(bytes, chunk_scratch(loops, geometry_of(in.shape, mask, in.dtype,
                                                             {parts.axis, parts.begin[i], parts.begin[i + 1]})));
  const std::int64_t kept = kernels::sums_kept(static_cast<std::int64_t>(parts.count()));
  return bytes + static_cast<std::size_t>((kept - 1) * reduced_shape(in.shape, mask, false).size() * loops.bytes);
}

bool takes_program(const AxisMask& mask, const Meta& in) {
  constexpr std::int64_t kShortest = 1024;  // elements; below, starting the program for each tile takes longer
  const Geometry g = geometry_of(in.shape, mask, in.dtype);
  return g.w < kWideColumns && (g.repeats == 1 || g.m * g.w >= kShortest);
}

}  // namespace syncline
