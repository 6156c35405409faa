// Where the buckets of all-reduces start among a plan's tasks.
#pragma once

#include <unordered_map>
#include <vector>

#include "runtime/schedule/tasks.h"

namespace syncline {

// Puts the all-reduces `sums` (in the order of the graph) into buckets, and the tasks that start these among `tasks`:
// in the order in which their last elements get ready, each right behind that element's task. What is needed under
// different conditions is in different buckets. `transfers` counts the plan's transfers. Returns the bucket of each
// all-reduce, by the order of their starts.
std::unordered_map<const Node*, int> place_buckets(std::vector<Task>& tasks, const std::vector<Expr>& sums,
                                                   const GuardedNodes& guarded, const LocalView& local,
                                                   const Distributor* distributor, int& transfers);

}  // namespace syncline
