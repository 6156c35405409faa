// Second pass of a plan: what runs, in which order. Elementwise nodes are grouped into fused programs; all-reduces that
// nothing on the wire waits for are put into buckets; what depends on those comes last, bucket by bucket.
#pragma once

#include <string>
#include <vector>

#include "runtime/distributor.h"
#include "runtime/local.h"
#include "runtime/schedule/guards.h"

namespace syncline {

struct Task {
  enum Kind : std::uint8_t {
    kKernel,
    kFused,
    kAllReduce,  // starts one for all `nodes`
    kAllGather,  // starts one
    kWait,       // for `transfer`
    kMeeting,    // of all ranks: runtime/schedule/commit.h
    kLoop,
  };
  Kind kind = kKernel;
  std::vector<Expr> nodes;  // fused: the members in order, the last is the one that the others lead to; else as above
  std::vector<Expr> reads;  // values
  std::vector<Expr> windows{};  // fused: operands that are no values of their own but windows onto their inputs, which
                                // are among `reads`
  std::vector<Expr> writes;     // values that must be stored
  std::vector<Expr>
      joined{};  // fused: those of `writes` that are concatenations of members (runtime/schedule/join_outputs.h)
  std::vector<Expr> products{};  // loop: those of `writes` that it sums over the rows of all turns, and
  std::vector<Expr> passing{};   // stacks that only these need (runtime/schedule/fold_products.h)
  int transfer = -1;             // kAllReduce, kAllGather, kWait: a number that joins start and wait
  bool bucketed = false;         // kAllReduce: put into a bucket
  Guards guards = {};            // runs only if all of them hold
  int lowered = -1;              // loop: its number among the plan's
  bool meets = false;            // loop: its turns have transfers
  bool may_refuse = false;       // throws for some values that it may read
};

// Whether a step may end in the task: where it waits for other ranks and the wire fails, or where a value is refused.
inline bool may_fail(const Task& task) {
  return task.kind == Task::kWait || task.kind == Task::kMeeting || task.meets || task.may_refuse;
}

// In running order. Every value read is a leaf, a view, or written by an earlier task. Without `fuse` each elementwise
// node is a program of its own.
std::vector<Task> make_tasks(const std::vector<Expr>& roots, const LocalView& local, const Distributor* distributor,
                             bool fuse = true);

}  // namespace syncline
