// A smaller program that fails in the same way.
#pragma once

#include <functional>

#include "tests/graphs/program.h"

namespace syncline::graphs {

// `fails` returns true if a program still fails. It is called at most `attempts` times.
Program shrink(Program program, const std::function<bool(const Program&)>& fails, int attempts = 400);

}  // namespace syncline::graphs
