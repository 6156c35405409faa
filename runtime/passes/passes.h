// The passes of compile(), in running order. Each takes a schedule and returns the next; passes have no state.
// runtime/schedule/schedule.h defines schedules and the invariants after every pass.
#pragma once

#include "runtime/schedule/schedule.h"

namespace syncline {

// Places the graph on the ranks and inserts collectives.
CompileRequest place(CompileRequest request);

// Makes a task for each node that computes something, operands first.
Schedule list_tasks(CompileRequest request);
// Makes programs of elementwise tasks over the same elements whose intermediate values only the program reads.
Schedule fuse(Schedule schedule);
// Marks the transfers that may wait and the tasks behind them. Joins small sums that may not wait and do not depend on
// one another; a large task that they do not need runs while they are under way.
Schedule coalesce(Schedule schedule);
// Moves tasks that depend on delayable transfers to the end. Starts gathers as early as possible.
Schedule order(Schedule schedule);
// Moves what only sums over ranks need up to where its operands are ready, so that the sums start early: the gradient
// of a kernel before that of the layer's input, accumulated gradients into the backward pass.
Schedule advance(Schedule schedule);
// Groups all-reduces on which no other transfer depends into buckets, which start when their last element is ready.
Schedule bucket(Schedule schedule);
// Inserts a wait for each transfer, before its first reader or at the end.
Schedule wait(Schedule schedule);
// Lets a program write the concatenations of its values.
Schedule join_outputs(Schedule schedule);
// Lets programs compute values again from operands that cost about as much to read, so that they are not stored.
Schedule recompute(Schedule schedule);
// Lets a loop compute sums over the rows of all iterations from its own stacks.
Schedule fold_products(Schedule schedule);
// How many iterations such a loop adds up at a time. `stack`: the shape of a stack operand.
std::int64_t iterations_together(const Shape& stack);
// Compiles the bodies of loops.
Schedule compile_bodies(Schedule schedule);
// Moves tasks that write variables behind all tasks that may fail.
Schedule commit(Schedule schedule);
// Lets sums over the rows of the batch add the parts of the rows along one tree, if the batch has parts.
Schedule divide_sums(Schedule schedule);
// Lets a program run on the value of the kernel before it, part by part, while the part is in the cache. The value's
// other readers come later.
Schedule epilogues(Schedule schedule);
// Assigns a buffer to every value and every task's scratch.
Schedule assign_memory(Schedule schedule);
// Makes the programs of fused tasks. They may overwrite operands that they read last.
Schedule make_programs(Schedule schedule);
// Lets programs read other ranks' rows, and the terms of sums, in those ranks' memory: without gathers and sums.
Schedule lease(Schedule schedule);
// The operands of such a task that it reads rank by rank (Task::by_rank).
RankParts rank_parts(const Task& task, const Schedule& schedule);
// Sets offsets in the arena and in the shared memory.
Schedule lay_out_memory(Schedule schedule);

Plan emit(Schedule schedule);

}  // namespace syncline
