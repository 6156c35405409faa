// Space: the elements that a node computes. Elementwise nodes over equal spaces may run in one program. Pure functions.
#pragma once

#include "runtime/schedule/schedule.h"

namespace syncline {

// A value's elements over all ranks. Uses the global shape, never the shape of this rank's part, which may equal
// another value's by chance: all ranks must make equal tasks, so that their transfers have one order.
struct Space {
  Shape shape;
  Placement at;
  friend bool operator==(const Space&, const Space&) = default;
};
Space space_of(const Expr& e, const LocalView& local);

// The elements that a program of the task walks: those of its elementwise nodes, or of a reduction's operand.
Space space_of_program(const Task& task, const LocalView& local);

// True if an operand is gathered: elementwise programs may read it where it lies (passes/transfers/lease.cc),
// reductions cannot.
bool reads_gathered(const Task& task, const LocalView& local);

// True if the task is a reduction whose operand a program can compute a tile at a time, on every rank.
bool can_take_program(const Task& task, const LocalView& local);

// A value's bytes over all ranks: all ranks must make equal tasks.
std::int64_t bytes_over_all_ranks(const Expr& e);

// True if a program over the space may need a block buffer for the operand: a broadcast, or a sum over the ranks that
// the program adds up itself (passes/transfers/lease.cc).
bool may_need_buffer(const Expr& operand, const Space& space, const LocalView& local);

// True if one program over the space of the first task can hold the nodes and operands of both. An upper bound: a value
// read only through strided views is no operand.
bool fit_one_program(const Task& first, const Task& second, const LocalView& local);

// True if fused programs can read the value directly from its input, for any number of rows on a rank.
bool is_strided_view(const Expr& e, const LocalView& local);

// Limits of one program.
inline constexpr std::size_t kMostNodes = 40;
inline constexpr std::size_t kMostBroadcastOperands = 14;                // operands that may need a block buffer
inline constexpr std::size_t kMostRegisters = kernels::kFusedRegisters;  // one per node and outside operand

}  // namespace syncline
