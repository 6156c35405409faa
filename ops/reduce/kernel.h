// Reductions over any axes of a C-ordered operand, which lies in memory or is computed by a program. The order of
// operations depends on shapes only.
//
// A reduction consists of tiles of m x w contiguous elements, each reduced to w (w = 1 if the last axis is reduced).
// Threads take whole outputs. If there are few outputs, the reduced rows are cut into fixed chunks, and the partial
// results are combined in order. Results are bitwise equal for any number of threads and any instruction set, and
// whether or not a program computes the operand. Thread-safe; nothing is allocated.
#pragma once

#include <cstddef>

#include "ops/kernels/fused/fused.h"
#include "ops/reduce/axes.h"
#include "ops/reduce/loops.h"

namespace syncline {

// Reduces input 0 over the axes of the mask into output 0.
// With a program, the inputs are the program's; in_meta[0] is that of the operands, FusedProgram::reduced. The outputs
// are those that the program stores, then a reduction for each operand. A stored output may overwrite an input that is
// no operand.
void reduce(const ReduceLoops& loops, const AxisMask& mask, const KernelArgs& k,
            const kernels::FusedProgram* program = nullptr);
// Bytes of scratch memory that `reduce` needs for each operand.
std::size_t reduce_scratch(const AxisMask& mask, const Meta& in);
// False if threads share the columns of such an operand, which a program cannot compute, or if it would be slower.
bool takes_program(const AxisMask& mask, const Meta& in);

}  // namespace syncline
