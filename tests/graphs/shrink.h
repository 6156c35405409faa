// A smaller program that fails in the same way.
#pragma once

#include <functional>

#include "tests/graphs/program.h"

namespace syncline::graphs {

// `fails`: whether a program does. Asks at most `attempts` times.
Program shrink(Program program, const std::function<bool(const Program&)>& fails, int attempts = 400);

}  // namespace syncline::graphs
