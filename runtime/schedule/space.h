// What decides which elementwise nodes may run in one program.
#pragma once

#include "runtime/schedule/schedule.h"

namespace syncline {

// What a value's elements are, over all ranks. Tasks are made alike on every rank, so that transfers have one order:
// what decides is never the shape of a rank's own part, which may be that of another value by chance.
struct Space {
  Shape shape;
  Placement at;
  friend bool operator==(const Space&, const Space&) = default;
};
Space space_of(const Expr& e, const LocalView& local);

// A value that fused programs can read in its input, however many rows a rank has.
bool is_window(const Expr& e, const LocalView& local);

// Limits of one program.
inline constexpr std::size_t kMostNodes = 40;
inline constexpr std::size_t kMostLaidOut = 14;  // operands that need a block buffer of their own
inline constexpr std::size_t kMostRegisters = kernels::kFusedRegisters;  // one a node and one an operand from outside

}  // namespace syncline
