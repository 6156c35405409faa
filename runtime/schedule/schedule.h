// Schedule: a placed graph as tasks in running order. The passes of compile() (runtime/passes/) turn it, one after the
// other, into what a plan's steps are emitted from. A value type: each pass takes one and returns the next.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ops/kernels/fused/fused.h"
#include "runtime/placement/distributor.h"
#include "runtime/placement/local.h"
#include "runtime/plan/plan.h"
#include "runtime/schedule/guards.h"
#include "runtime/schedule/memory.h"
#include "syncline/backend/variable.h"

namespace syncline {

// What compile() makes a plan of: a graph of known shapes, and what the caller hands over.
struct CompileRequest {
  std::string name{};                     // of the function, for errors
  std::vector<Expr> feeds;                // placeholders, in the order of Plan::run's feeds
  bool local = false;                     // split feeds hold this rank's rows only; otherwise all rows
  std::vector<Expr> outputs;              // roots that Plan::output(i) reads
  std::vector<bool> in_callers_memory{};  // outputs that the caller has memory for: feed feeds.size() + i
  std::vector<Update> updates{};
  PlacementMap placement{};         // of the feeds; once placed, of every value
  std::vector<Placement> wanted{};  // of the outputs, then of the updates' values; empty: all whole
  const RowShares* shares = nullptr;
  Distributor* distributor = nullptr;
  bool shared_buckets = false;  // transfers have memory of their own: Plan::shared_bytes
  bool fuse = true;             // Passes in syncline/session.h
  bool placed = false;          // what place() says
  // What a random op draws by in a loop's body; elsewhere it is how often the op has run.
  std::function<const std::uint64_t*(const RandomOp&)> draw_in_iteration{};

  const std::uint64_t* random_step(const RandomOp& op) const;
};

struct Task {
  enum Kind : std::uint8_t {
    kKernel,
    kFused,      // elementwise nodes in one program
    kAllReduce,  // starts one for all `nodes`
    kAllGather,  // starts one
    kWait,       // for `transfer`
    kBarrier,    // of all ranks (passes/commit.cc)
    kLoop,
  };
  Kind kind = kKernel;
  std::vector<Expr> nodes{};     // kFused: operands before users; kAllReduce: one or several; kKernel, kLoop: one
  std::vector<Expr> reads{};     // values, or views of values
  std::vector<Expr> windows{};   // kFused: operands that are windows onto a value among `reads`, without memory
  std::vector<Expr> writes{};    // values that are stored
  std::vector<Expr> joined{};    // kFused: those of `writes` that are concatenations of nodes (passes/join_outputs.cc)
  std::vector<Expr> products{};  // kLoop: those of `writes` that are sums over the rows of all iterations
  std::vector<Expr> passing{};   // kLoop: stacks that only `products` need (passes/fold_products.cc)
  int transfer = -1;             // kAllReduce, kAllGather, kWait: joins start and wait
  bool bucketed = false;         // kAllReduce: put into a bucket
  bool late = false;             // needs a transfer that may wait for the end of the step (passes/order.cc)
  Guards guards{};               // runs only if all of them hold
  int body = -1;                 // kLoop: index in Schedule::bodies
  int scratch = -1;              // kKernel, kLoop: the buffer that only it uses
  int program = -1;              // kFused: index in Schedule::programs
  bool in_place = false;         // kAllGather: its readers read the rows of each rank in its memory (passes/lease.cc)
  std::vector<std::int64_t> by_rank{};  // kFused: where each rank's elements begin, one more than there are ranks, if
                                        // it reads what was gathered in place
  bool has_transfers = false;           // kLoop: its iterations have transfers
  bool may_refuse = false;              // throws for some values that it may read

  bool starts_transfer() const { return kind == kAllReduce || kind == kAllGather; }
  // Whether a step may end in the task: where it waits for other ranks and the wire fails, or where a value is refused.
  bool may_fail() const { return kind == kWait || kind == kBarrier || has_transfers || may_refuse; }
};

struct Schedule {
  CompileRequest request;   // with its roots as they are placed
  std::vector<Expr> roots;  // the outputs, then the updates' values
  std::vector<Task> tasks;  // in running order
  int transfers = 0;        // numbers that transfers have so far
  std::vector<LoopStep> bodies;
  std::vector<kernels::FusedProgram> programs;
  Memory memory;  // from the pass `buffers` on

  // Which values are whole and which are this rank's parts.
  LocalView local() const { return {request.placement, *request.shares}; }
  std::size_t outputs() const { return request.outputs.size(); }
  const Expr& new_value(std::size_t update) const { return roots[outputs() + update]; }
};

// Throws InternalError for the first rule that the schedule breaks, with the pass that broke it. Collective, if there
// is a distributor. compile() asks behind every pass in debug builds and in tests (SYNCLINE_VERIFY_PLAN=1).
// - what a task reads is a leaf or was written before it; what a transfer gives is read behind its wait;
// - each transfer starts once and is waited for once, under the same guards, and all ranks have the same in one order;
// - no task writes a variable before one that may fail;
// - a value's memory is written by no other task as long as the value is read;
// - memory that other ranks read is written by no task before the ranks have met again.
void verify(const Schedule& schedule, const char* pass);

// The schedule for people: a line a task, with shapes, parts, guards and memory.
std::string to_text(const Schedule& schedule);

}  // namespace syncline
