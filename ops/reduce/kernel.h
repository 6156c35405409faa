// Reductions over any axes of a C-ordered operand, which lies in memory or is computed by a program. The order of
// operations depends on shapes only.
//
// A reduction consists of tiles of m x w contiguous elements, each reduced to w (w = 1 if the last axis is reduced).
// Threads take whole outputs. If many elements are reduced to one, they are cut into fixed chunks, and the partial
// results are combined in order. The parts of a batch are reduced one by one, each as if it were alone, and their
// results are combined along the tree of ops/kernels/part_tree.h. Results are bitwise equal for any number of threads
// and any instruction set, and whether or not a program computes the operand. Thread-safe. A thread's first reduction
// of a program allocates 0.5 MiB, which the thread keeps; nothing else is allocated.
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
// Bytes of scratch memory that `reduce` needs for each operand; with parts if the operand has parts along a reduced
// axis.
std::size_t reduce_scratch(const ReduceLoops& loops, const AxisMask& mask, const Meta& in, const RowParts& parts = {});
// False if threads share the columns of such an operand, which a program cannot compute, or if it would be slower.
bool takes_program(const AxisMask& mask, const Meta& in);

// The base of an op that is a reduction. `Self` may have loops_of(dtype of the operand); otherwise `Self::kName` names
// the loops.
template <class Self>
struct ReductionOp {
  using Attrs = ReduceAttrs;
  static constexpr auto fields = kReduceFields;
  static ReduceLoops loops_of(DType operand) { return reduce_loops(Self::kName, operand); }
  static AxisMask mask_of(const Attrs& a, const Shape& operand) {
    return axis_mask(Self::kName, a.axes, operand.ndim());
  }
  static std::size_t scratch(const Attrs& a, std::span<const Meta> in, std::span<const Meta>) {
    return reduce_scratch(Self::loops_of(in[0].dtype), mask_of(a, in[0].shape), in[0]);
  }
  static std::size_t parts_scratch(const Attrs& a, std::span<const Meta> in, const RowParts& parts) {
    return reduce_scratch(Self::loops_of(in[0].dtype), mask_of(a, in[0].shape), in[0], parts);
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    reduce(Self::loops_of(k.in_dtype(0)), mask_of(a, k.in_shape(0)), k);
  }
  static void run_program(const Attrs& a, const KernelArgs& k, const kernels::FusedProgram& program) {
    reduce(Self::loops_of(k.in_dtype(0)), mask_of(a, k.in_shape(0)), k, &program);
  }
  static bool takes_program(const Attrs& a, const Meta& operand) {
    return syncline::takes_program(mask_of(a, operand.shape), operand);
  }
  static Expr simplify(const Attrs& a, std::span<const Expr> in, const Meta& out) {
    return reduced_nothing(Self::kName, a, in[0], out);
  }
};

}  // namespace syncline
