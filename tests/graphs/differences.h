// Compares gradients with differences, in float64.
#pragma once

#include <string>

#include "tests/graphs/program.h"

namespace syncline::graphs {

// "", or the first element of an input's gradient that disagrees with differences of the loss at the first call's
// values. At a kink of the loss, a program of one line is compared with both one-sided differences; other programs are
// not compared. `moved` compares at a point nearby, without the kinks.
std::string compare_with_differences(const Program& program, bool moved = false);

}  // namespace syncline::graphs
