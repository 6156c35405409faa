// Gradients against differences, in float64.
#pragma once

#include <string>

#include "tests/graphs/program.h"

namespace syncline::graphs {

// "" or which element of which input's gradient is not what differences of the loss say, at the first call's values.
// Where the loss has a kink, programs of one line are compared with both one-sided differences, others not. With
// `moved`: at a point nearby, without the kinks.
std::string compare_with_differences(const Program& program, bool moved = false);

}  // namespace syncline::graphs
