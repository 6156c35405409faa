// Last pass over the tasks of a plan that has transfers, in loops or outside: what writes variables comes behind all of
// these. The wire fails in a transfer, so when it does, every variable still has its value from before the step: what
// the ranks that are left hold is the state behind the last step that was completed, and can be saved.
#pragma once

#include <vector>

#include "runtime/tasks.h"

namespace syncline {

// `new_values`: of the variables, as in the plan's roots. Tasks without transfers are returned as they are.
std::vector<Task> commit_last(std::vector<Task> tasks, const std::vector<Expr>& new_values, const LocalView& local);

}  // namespace syncline
