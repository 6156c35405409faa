// Lowers a loop's body to a plan of its own.
#pragma once

#include "runtime/local.h"
#include "runtime/plan.h"
#include "runtime/schedule/tasks.h"

namespace syncline {

// What the task writes: all final states, the taps that are stored, and its products.
LoopStep lower_loop(const Task& task, const LocalView& local, const LowerRequest& request);

}  // namespace syncline
