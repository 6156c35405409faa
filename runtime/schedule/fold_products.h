// Between the second pass and the third: a sum over the rows of all turns (a weight's gradient) that a loop's stacks
// are operands of is computed by the loop, some turns at a time, while their rows are in the cache. A stack that
// nothing else reads is kept for those turns only.
#pragma once

#include <vector>

#include "runtime/local.h"
#include "runtime/schedule/tasks.h"

namespace syncline {

// `tasks` in running order; roots: what the plan's caller reads.
std::vector<Task> fold_products(std::vector<Task> tasks, const std::vector<Expr>& roots, const LocalView& local);

// How many turns of a loop with such sums go together, whose stack is `stack`.
std::int64_t turns_together(const Shape& stack);

}  // namespace syncline
