// Counts the program's allocations with `new`: allocations.cc replaces the global operators.
#pragma once

#include <cstdint>

namespace syncline::testing {

std::int64_t allocations();

}  // namespace syncline::testing
