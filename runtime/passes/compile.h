// compile: from a graph of known shapes to a plan. Functions and the bodies of loops alike.
#pragma once

#include "runtime/schedule/schedule.h"

namespace syncline {

// Throws ValueError for a placeholder that is needed but not among the feeds, and what the ops' rules throw.
// SYNCLINE_DUMP_PLAN=folder: writes the schedule behind each pass to folder/<rank>-<number>-<function>/<pass>.txt.
Plan compile(CompileRequest request);

}  // namespace syncline
