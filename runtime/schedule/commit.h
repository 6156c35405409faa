// Last pass over the tasks of a plan that may fail: in a transfer, in loops or outside, where the wire fails; or in an
// op that refuses a value (OpDef::may_refuse). What writes variables comes behind all of these. So a step that fails
// leaves every variable with its value from before the step: it is as if it had not been called, and what the ranks
// that are left hold is the state behind the last step that was completed, and can be saved.
#pragma once

#include <vector>

#include "runtime/plan.h"
#include "runtime/schedule/tasks.h"

namespace syncline {

// The request's outputs, then the values of its updates. A root that is a variable's old value becomes a copy if the
// variable is updated in the same step.
std::vector<Expr> roots_of(const LowerRequest& request, const LocalView& local);

// `roots`: as above. Loops must be lowered (Task::meets, Task::may_refuse); of the other tasks, may_refuse is found
// here. Tasks that cannot fail are returned as they are.
//
// A rank that refuses a value alone, of its own rows, never starts the transfers behind it, so that the others fail in
// these. Where no transfer stands behind such a task, the ranks meet before they write variables.
std::vector<Task> commit_last(std::vector<Task> tasks, const std::vector<Expr>& roots, const LowerRequest& request,
                              const LocalView& local);

}  // namespace syncline
