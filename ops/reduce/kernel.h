// The loops of reductions: any axes of any C-ordered operand, in an order that depends on shapes only.
//
// A reduction is cut into tiles of m x w contiguous elements that are reduced to w (w = 1 where the last axis is
// reduced). Whole outputs go to different threads; where there are few of them, the reduced rows are cut into fixed
// chunks whose partial results are combined in order. So bits depend neither on the number of threads nor on the
// instruction set. Thread-safe; nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ops/reduce/axes.h"

namespace syncline {

struct ReduceLoops {
  // acc[j] = the neutral element
  void (*start)(void* acc, std::int64_t w);
  // acc[j] = f(acc[j], x[i * stride + j] for i < m), for j < w
  void (*columns)(const void* x, std::int64_t m, std::int64_t w, std::int64_t stride, void* acc);
};

// The loops of "sum", "prod", "max", "min", "any" or "all".
ReduceLoops reduce_loops(std::string_view op, DType dtype);

// Reduces input 0 over the axes of the mask into output 0.
void reduce(const ReduceLoops& loops, const AxisMask& mask, const KernelArgs& k);
// Bytes of scratch that `reduce` needs.
std::size_t reduce_scratch(const AxisMask& mask, const Meta& in);

}  // namespace syncline
