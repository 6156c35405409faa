// Schedule: a placed graph as tasks in running order. Each pass of compile() (runtime/passes/) takes a schedule and
// returns the next; the last one becomes a plan's steps. A value type; borrows CompileRequest's shares and strategy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/kernels/fused/fused.h"
#include "runtime/placement/local.h"
#include "runtime/placement/strategy.h"
#include "runtime/plan/layers.h"
#include "runtime/plan/part_sum.h"
#include "runtime/plan/plan.h"
#include "runtime/schedule/guards.h"
#include "runtime/schedule/memory.h"
#include "syncline/backend/variable.h"

namespace syncline {

// The input of compile(): a graph of known shapes and its feeds.
struct CompileRequest {
  std::string name{};                     // the function's name, for errors
  std::vector<Expr> feeds;                // placeholders, in the order of Plan::run's feeds
  bool local = false;                     // split feeds hold only this rank's rows; otherwise all rows
  std::vector<Expr> outputs;              // roots that Plan::output(i) reads
  std::vector<bool> in_callers_memory{};  // computes output i in feed feeds.size() + i, the caller's memory
  std::vector<Update> updates{};
  PlacementMap placement{};         // of the feeds; after place(), of every value
  std::vector<Placement> wanted{};  // of the outputs, then of the updates' values; empty: all replicated
  const RowShares* shares = nullptr;
  Strategy* strategy = nullptr;
  bool shared_buckets = false;  // transfers use the shared memory (Plan::shared_bytes)
  bool fuse = true;             // Passes in syncline/session.h
  bool placed = false;          // place() has run
  // In a loop's body: the random step of an op. Empty elsewhere: the step is RandomOp::runs.
  std::function<const std::uint64_t*(const RandomOp&)> draw_in_iteration{};
  Layers layers{};  // in a loop's body, for profiles

  const std::uint64_t* random_runs(const RandomOp& op) const;
};

inline bool contains(const std::vector<Expr>& values, const Expr& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}
inline void add_once(const Expr& value, std::vector<Expr>& values) {
  if (!contains(values, value)) values.push_back(value);
}

struct Task {
  enum Kind : std::uint8_t {
    kKernel,
    kFused,          // elementwise nodes in one program
    kReduce,         // elementwise nodes, then equal reductions of their values and of operands, in one pass
    kAllReduce,      // starts one transfer for all `nodes`
    kReduceScatter,  // starts one transfer
    kAllGather,      // starts one transfer
    kWait,           // for `transfer`
    kBarrier,        // a transfer without data (passes/commit.cc)
    kLoop,
  };
  Kind kind = kKernel;
  std::vector<Expr> nodes{};  // kFused, kReduce: operands before users; kAllReduce: one or several; kKernel, kLoop: one
  std::vector<Expr> reads{};  // values, or views of values
  std::vector<Expr> strided_views{};  // of programs: operands without memory: strided views of values in `reads`
  std::vector<Expr> writes{};         // stored values
  std::vector<Expr> joined{};         // kFused: the concatenations of nodes in `writes` (passes/join_outputs.cc)
  std::vector<Expr> products{};       // kLoop: the sums over the rows of all iterations in `writes`
  std::vector<Expr> passing{};        // kLoop: stacks that only `products` read (passes/fold_products.cc)
  int transfer = -1;                  // kAllReduce, kReduceScatter, kAllGather, kWait: number that links start and wait
  bool bucketed = false;              // kAllReduce, kReduceScatter: may wait in a bucket
  bool late = false;      // depends on a transfer that may wait until the end of the step (transfers/coalesce.cc)
  Guards guards{};        // runs only if all of them hold
  int body = -1;          // kLoop: index in Schedule::bodies
  int scratch = -1;       // kKernel, kReduce, kLoop: its scratch buffer
  int part_sum = -1;      // kKernel: index in Schedule::part_sums
  RowParts parts{};       // kKernel, kReduce: of ops that add the parts themselves
  int program = -1;       // kFused, kReduce: index in Schedule::programs
  bool in_place = false;  // kAllGather, kReduceScatter: readers read each rank's rows, or add the ranks' terms, in the
                          // ranks' memory (passes/transfers/lease.cc)
  bool epilogue = false;  // kFused: runs within the kernel before it, whose value it reads (passes/epilogues.cc)
  std::vector<std::int64_t> by_rank{};  // kFused: with operands gathered in place: rank r has the elements
                                        // [by_rank[r], by_rank[r + 1])
  bool has_transfers = false;           // kLoop: its body has transfers
  bool may_throw = false;               // may throw for some values of its operands

  bool has_program() const { return kind == kFused || kind == kReduce; }
  // The nodes behind the elementwise ones.
  std::span<const Expr> reductions() const {
    const auto first = std::find_if(nodes.begin(), nodes.end(), [](const Expr& e) { return e.op().block == nullptr; });
    return {first, nodes.end()};
  }
  bool starts_transfer() const { return kind == kAllReduce || kind == kReduceScatter || kind == kAllGather; }
  // True if the task may throw: a transfer fails, or an op rejects a value.
  bool may_fail() const { return kind == kWait || kind == kBarrier || has_transfers || may_throw; }
};

struct Schedule {
  CompileRequest request;                            // with placed roots
  std::vector<Expr> roots{};                         // the outputs, then the updates' values
  std::vector<std::shared_ptr<const Node>> nodes{};  // under the roots, inputs and guards before users
  std::vector<Task> tasks{};                         // in running order
  int transfers = 0;                                 // transfer numbers in use
  std::vector<LoopStep> bodies{};
  std::vector<kernels::FusedProgram> programs{};
  std::vector<PartSum> part_sums{};
  Chunks<std::int64_t> borders{};  // of Task::parts
  Memory memory{};                 // set by the pass assign_memory
  bool leases_end = false;         // each run has a transfer behind the last task that reads other ranks' memory

  // The values' shapes on this rank.
  LocalView local() const { return {request.placement, *request.shares}; }
  std::size_t outputs() const { return request.outputs.size(); }
  const Expr& new_value(std::size_t update) const { return roots[outputs() + update]; }
};

// True in debug builds and in tests (SYNCLINE_VERIFY_PLAN=1): compile() calls `verify` after every pass, and runs of
// the plan check that kernels stay within their scratch (runtime/plan/scratch_guard.h).
bool verifies_plans();

// Checks the invariants below. Throws InternalError that names the first broken one and the pass. Collective if there
// is a strategy.
// - A task reads leaves and values written by earlier tasks; it reads a transfer's result after the wait.
// - Each transfer has one start and one wait, under equal guards. All ranks have equal transfers in equal order.
// - A task that writes a variable that is not shared comes after all tasks that may fail.
// - A transfer starts after all tasks that write a shared variable's new value or read its old one.
// - No task overwrites a value's memory while the value has readers.
// - An epilogue follows a kernel that supports it, reads the kernel's whole value, and writes no memory that the kernel
//   reads or that another value may have while the kernel runs.
// - Only transfers in place and tasks that compute this rank's part or term of one write leased memory.
// - Programs add up what they read of a sum in place. If leases end, a transfer starts behind the last read of other
//   ranks' memory.
void verify(const Schedule& schedule, const char* pass);

// The schedule as text for debugging: each task with shapes, placements, guards and memory.
std::string to_text(const Schedule& schedule);

}  // namespace syncline
