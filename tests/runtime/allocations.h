// Counts what the program allocates with `new`. Linked, it replaces the global operators.
#pragma once

#include <cstdint>

namespace syncline::testing {

std::int64_t allocations();

}  // namespace syncline::testing
