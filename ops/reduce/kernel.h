// Reduction loops over any axes of a C-ordered operand. The order of operations depends on shapes only.
//
// A reduction consists of tiles of m x w contiguous elements, each reduced to w (w = 1 if the last axis is reduced).
// Threads take whole outputs. If there are few outputs, the reduced rows are cut into fixed chunks, and the partial
// results are combined in order. Results are bitwise equal for any number of threads and any instruction set.
// Thread-safe; nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ops/reduce/axes.h"

namespace syncline {

struct ReduceLoops {
  // acc[j] = the neutral element, for j < w
  void (*start)(void* acc, std::int64_t w);
  // acc[j] = f(acc[j], x[i * stride + j] for i < m), for j < w
  void (*columns)(const void* x, std::int64_t m, std::int64_t w, std::int64_t stride, void* acc);
};

// The loops of "sum", "prod", "max", "min", "any" or "all". Throws InternalError for other names.
ReduceLoops reduce_loops(std::string_view op, DType dtype);

// Reduces input 0 over the axes of the mask into output 0.
void reduce(const ReduceLoops& loops, const AxisMask& mask, const KernelArgs& k);
// Bytes of scratch memory that `reduce` needs.
std::size_t reduce_scratch(const AxisMask& mask, const Meta& in);

}  // namespace syncline
