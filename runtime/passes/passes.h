// The passes of compile(), in their order. Each takes a schedule and returns the next; none keeps anything between
// calls. runtime/schedule/schedule.h says what a schedule is, and what holds behind every pass.
#pragma once

#include "runtime/schedule/schedule.h"

namespace syncline {

// The graph placed over the ranks, with the collectives in.
CompileRequest place(CompileRequest request);

// A task for each node that computes something, operands first.
Schedule list_tasks(CompileRequest request);
// Elementwise tasks over the same elements become one program where only it needs what lies between.
Schedule fuse(Schedule schedule);
// What waits for transfers that may wait comes last; gathers start as soon as they can.
Schedule order(Schedule schedule);
// Sums over ranks that nothing on the wire waits for share transfers, which start when their last element is ready.
Schedule bucket(Schedule schedule);
// A wait for each transfer, before its first reader or at the end.
Schedule wait(Schedule schedule);
// A concatenation of what one program computes is written by that program.
Schedule join_outputs(Schedule schedule);
// A sum over the rows of all iterations is computed by the loop whose stacks it is made of.
Schedule fold_products(Schedule schedule);
// How many iterations of a loop with such sums go together, whose stack is `stack`.
std::int64_t iterations_together(const Shape& stack);
// Bodies of loops are compiled.
Schedule compile_bodies(Schedule schedule);
// What writes variables comes behind all that may fail.
Schedule commit(Schedule schedule);
// A buffer for every value, and for what a task needs beside its values.
Schedule assign_memory(Schedule schedule);
// The fused tasks' programs, which write over operands where these end.
Schedule make_programs(Schedule schedule);
// Programs read the rows of other ranks where these have them.
Schedule lease(Schedule schedule);
// Offsets in the arena and in the shared memory.
Schedule lay_out_memory(Schedule schedule);

Plan emit(Schedule schedule);

}  // namespace syncline
