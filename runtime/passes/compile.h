// compile: makes a plan from a graph of known shapes, for functions and loop bodies. Collective if the request has a
// strategy.
#pragma once

#include "runtime/schedule/schedule.h"

namespace syncline {

// Throws ValueError for a placeholder that is read but not among the feeds, and what the ops' rules throw.
// SYNCLINE_DUMP_PLAN=folder writes the schedule after each pass (runtime/schedule/dump.h).
Plan compile(CompileRequest request);

}  // namespace syncline
