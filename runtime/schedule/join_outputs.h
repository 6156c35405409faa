// Between the second pass and the third: a concatenation of what one fused program computes is written by that program,
// part by part, instead of being copied together afterwards.
#pragma once

#include <vector>

#include "runtime/local.h"
#include "runtime/schedule/tasks.h"

namespace syncline {

// `tasks` in running order, as make_tasks gives them; roots: what the plan's caller reads.
std::vector<Task> join_outputs(std::vector<Task> tasks, const std::vector<Expr>& roots, const LocalView& local);

}  // namespace syncline
