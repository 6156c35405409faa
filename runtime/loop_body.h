// Lowers a loop's body to a plan of its own.
#pragma once

#include "runtime/local.h"
#include "runtime/plan.h"

namespace syncline {

// `outputs` are those outputs of the loop that are stored: all final states, then the taps that are read.
LoopStep lower_loop(const Expr& loop, const std::vector<Expr>& outputs, const LocalView& local,
                    const LowerRequest& request);

}  // namespace syncline
