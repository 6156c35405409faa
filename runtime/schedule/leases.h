// Gathered values that stay where they are: if nothing but elementwise programs read one, and the ranks' memory can be
// seen, these programs read each rank's rows in its memory, and the gather is no more than a meeting of the ranks.
#pragma once

#include <vector>

#include "runtime/plan.h"
#include "runtime/schedule/buffers.h"

namespace syncline {

struct InPlaceGather {
  Expr value;                        // the gathered one
  std::size_t start = 0;             // the step that starts the gather
  std::vector<std::int64_t> begin;   // of each rank's elements; one more than there are ranks
  std::vector<std::size_t> readers;  // fused steps
};

// Among a plan's steps, with their programs.
std::vector<InPlaceGather> find_in_place_gathers(const std::vector<Step>& steps,
                                                 const std::vector<kernels::FusedProgram>& fused,
                                                 const LocalView& local, Buffers& buffers);

// Has the readers go through the ranks' elements. `offset`: of the value in the ranks' shared memory.
void read_by_rank(const InPlaceGather& gather, std::size_t offset, std::vector<Step>& steps,
                  std::vector<RankParts>& parts);

}  // namespace syncline
