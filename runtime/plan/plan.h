// Plan: the steps that compute a graph in fixed memory, for one set of fed shapes. compile (runtime/passes/compile.h)
// makes it once; it runs many times, and a run allocates nothing.
//
// A plan keeps the graph's attributes, constants and variables alive; the caller owns the arena and the shared memory.
// It belongs to one session, and one thread at a time runs it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/graph/op.h"
#include "ops/kernels/fused/fused.h"
#include "runtime/placement/strategy.h"
#include "runtime/plan/chunks.h"
#include "runtime/plan/part_sum.h"
#include "syncline/backend/variable.h"

namespace syncline {

class Session;
struct LoopStep;
struct ProfileLine;

// A value that a step reads or computes, for plan inspection.
struct StepValue {
  Expr value;  // never a view: a view's base instead
  Placement at;
  const std::string* assigned = nullptr;  // the name of the variable that takes the value, or null
};

struct Step {
  enum Kind : std::uint8_t { kKernel, kPartSum, kFused, kReduce, kStart, kWait, kLoop, kGuard };
  Kind kind = kKernel;
  bool may_throw = false;                     // may throw for some values of its operands
  bool needed_if = false;                     // kGuard: jumps if its operand differs
  int index = -1;                             // of the program, part sum, transfer or loop; kGuard: the step to jump to
  int by_rank = -1;                           // kFused: index of its RankParts, or -1
  std::size_t writes_shared_from = SIZE_MAX;  // lowest shared offset written; equal on all ranks
  void (*run)(const void* attrs, const KernelArgs& args) = nullptr;
  void (*run_program)(const void* attrs, const KernelArgs& args, const kernels::FusedProgram&) = nullptr;  // kReduce
  const void* attrs = nullptr;
  KernelArgs args;
  std::string label;               // for messages, timelines and plan inspection
  ProfileLine* profile = nullptr;  // counts its runs, unless null
  std::span<const StepValue> reads, writes;
  std::byte* scratch_end = nullptr;  // where its ScratchGuard begins; null: no guard
};

// A fused step over operands gathered in place: it runs once per rank and reads that rank's elements in that rank's
// shared memory.
struct RankParts {
  std::vector<std::int64_t> begin;    // elements of rank r: [begin[r], begin[r + 1])
  std::vector<std::size_t> operands;  // indices of the gathered operands
  std::vector<std::size_t> offsets;   // of each of these in the shared memory
  std::vector<const void*> in;        // all operands, for one rank; set by each run
};

// An operand of a fused step: this rank's elements of a sum over the ranks, whose terms lie in the shared memory of
// each. If that is not mapped here, the sum lies in this rank's memory.
struct TermSum : kernels::BlockSource {
  static constexpr int kMostRanks = 64;  // pointers on a thread's stack

  std::size_t slot, offset;  // of the operand; of its first element in the shared memory
  DType dtype;
  const Strategy* strategy = nullptr;  // set by bind, like
  std::vector<const std::byte*> terms{};

  TermSum(std::size_t operand, std::size_t at, DType type) : slot(operand), offset(at), dtype(type) {}
  void read(std::int64_t begin, std::int64_t count, void* to) const override;
};

class Plan {
 public:
  Plan();
  ~Plan();
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;

  // Bytes of memory for temporaries. Call bind before the first run and whenever the arena or the shared memory moves.
  std::size_t arena_bytes() const { return arena_bytes_; }
  // Bytes of memory for transfers, which may be shared with other ranks.
  std::size_t shared_bytes() const { return shared_bytes_; }
  void bind(std::byte* arena, std::byte* shared = nullptr, const Strategy* strategy = nullptr);
  // `feeds`: one pointer per placeholder, in the order of CompileRequest::feeds, then one per output in the caller's
  // memory. Throws what transfers and kernels throw. All transfers have then finished, so the caller may free the arena
  // and the feeds. With `listens`, Session::set_interruption can interrupt the run until it first writes a variable.
  void run(Session& session, std::span<const void* const> feeds, bool listens = true);
  // Output i on this rank. The bytes are valid from the end of a run until the next run.
  const void* output(std::size_t i) const { return pointers_[outputs_[i].slot]; }
  const Meta& output_meta(std::size_t i) const { return outputs_[i].meta; }
  std::size_t outputs() const { return outputs_.size(); }

  // True if a run has transfers, in loop bodies too.
  bool has_transfers() const;
  // True if an op of the plan may reject a value (OpDef::may_throw).
  bool may_throw() const;
  // Without duplicates; includes those of loop bodies.
  std::span<RandomOp* const> random_ops() const { return random_ops_; }
  const std::vector<std::shared_ptr<VariableState>>& variables() const { return variables_; }
  std::uint64_t fingerprint() const { return fingerprint_; }
  void set_fingerprint(std::uint64_t fingerprint);  // also sets those of loop bodies
  const std::vector<Step>& steps() const { return steps_; }
  // What a run takes at least, for profiles (runtime/plan/step_profile.h).
  const Work& work() const { return work_; }
  // One line per step: its label, shapes, and the reason for each transfer.
  std::string describe() const;

 private:
  friend class Emitter;
  struct ArenaSlot {
    std::size_t slot, offset;
  };
  struct FeedSlot {
    std::size_t slot, feed, offset;
  };
  struct VariableSlot {  // of a shared variable, whose memory changes with each step
    std::size_t slot;
    const VariableState* variable;
    bool next;
    std::size_t offset;
  };
  struct ScratchSlot {
    std::size_t step, slot;
    std::size_t guard;  // offset of its ScratchGuard; 0: none
  };
  struct Output {
    std::size_t slot;
    Meta meta;
  };
  void run_steps(Session& session, bool listens);
  void run_fused(const Step& step);
  void run_loop(Session& session, const Step& step, bool listens);
  void finish_transfers(Session& session) noexcept;
  void add_random_op(RandomOp* op);
  // Adds the variables of the nodes, the updates and the loops' bodies to variables_, in one order on all ranks.
  void add_variables(std::span<const std::shared_ptr<const Node>> nodes, std::span<const Update> updates);

  std::vector<Step> steps_;
  Chunks<Meta> metas_;           // of all steps
  Chunks<StepValue> values_;     // of all steps
  std::vector<void*> pointers_;  // operands and outputs of all steps
  std::vector<ArenaSlot> arena_slots_, shared_slots_;
  std::vector<FeedSlot> feed_slots_;
  std::vector<VariableSlot> variable_slots_;
  std::vector<VariableState*> exchanged_;  // shared variables with a new value after a run
  std::vector<ScratchSlot> scratch_slots_;
  std::vector<Output> outputs_;
  std::vector<kernels::FusedProgram> fused_;
  std::vector<kernels::ProgramEpilogue> epilogues_;
  std::vector<PartSum> part_sums_;
  Chunks<std::int64_t> borders_;  // of parts, in the steps' arguments
  std::vector<RankParts> rank_parts_;
  std::vector<TermSum> term_sums_;
  std::vector<const std::byte*> memory_of_;  // each rank's shared memory
  std::vector<Transfer> transfers_;
  std::vector<std::uint64_t> tickets_;  // per transfer; 0: not under way
  std::vector<LoopStep> loops_;
  std::vector<std::shared_ptr<VariableState>> variables_;
  std::vector<Expr> keep_;  // nodes own attributes and constants
  std::size_t arena_bytes_ = 0, shared_bytes_ = 0;
  std::size_t leased_bytes_ = 0;  // first bytes of the shared memory; other ranks read them
  bool leases_end_ = false;       // within a run (Schedule::leases_end)
  std::size_t first_write_ = 0;   // the first step that writes to a variable
  std::uint64_t fingerprint_ = 0;
  Work work_;
  ProfileLine* profile_ = nullptr;     // counts its runs, unless null; null in loops' bodies
  std::vector<RandomOp*> random_ops_;  // owned by nodes in keep_
};

// A loop within a plan. Operands: sequences, initial states, captures. Outputs: final states, stacks and sums of the
// residuals that are read, then products. The scratch holds the body's arena, then states and passing stacks. An
// iteration writes its states where the next iteration reads them: in the stack of a residual with the same values, or
// alternately in the output and in the scratch.
struct LoopStep {
  Plan body;  // feeds: elements, states, captures; outputs: next states, residuals
  std::int64_t iterations = 0;
  std::int64_t first_iteration = 0;  // this rank's first iteration among the iterations of all ranks
  bool reverse = false;
  std::vector<std::size_t> element_bytes;  // per sequence, of one iteration
  struct State {
    std::size_t bytes;
    std::size_t at;                     // offset in the scratch
    int residual_before, residual_now;  // residuals that stack the incoming and the next state, or -1
  };
  std::vector<State> states;
  struct Residual {
    std::size_t bytes;  // of one iteration
    bool sum;           // summed instead of stacked
    DType dtype;
    bool passing;    // a stack of `iterations_together` iterations in the scratch, for products; last in residuals
    std::size_t at;  // its offset there
  };
  std::vector<Residual> residuals;
  // A sum over the rows of all iterations (a weight's gradient) that the loop adds up, `iterations_together` iterations
  // at a time. Operands are stacks of this loop and sequences.
  struct Product {
    struct Operand {
      int in, residual;  // operand of the step or residual; the other one is -1
      std::size_t bytes;
    };
    void (*run)(const void* attrs, const KernelArgs& args);
    void (*accumulate)(const void* attrs, const KernelArgs& args);
    const void* attrs;
    std::vector<Operand> operands;
    std::vector<Meta> in_meta, out_meta;  // in_meta: of the iterations added together
    std::vector<const void*> in;
    ProfileLine* profile = nullptr;  // counts its runs, unless null
  };
  std::vector<Product> products;  // the step's last outputs
  std::int64_t iterations_together = 1;
  std::size_t scratch_bytes = 0;
  std::vector<const void*> feeds;  // of the body, then memory for its outputs; set in each iteration
  // The random step of an op in the body; differs between iterations.
  struct Draw {
    const RandomOp* op;
    const std::uint64_t* step;  // of the op outside the loop
    std::uint64_t in_iteration = 0;
  };
  std::vector<std::unique_ptr<Draw>> draws;

  // The element that the iteration reads. Iterations count in running order.
  std::int64_t element_of(std::int64_t iteration) const { return reverse ? iterations - 1 - iteration : iteration; }
  // Where an iteration writes residual i, and state i for the next iteration.
  void* memory_of_residual(const KernelArgs& args, std::size_t i, std::int64_t iteration) const;
  void* memory_of_state(const KernelArgs& args, std::size_t i, std::int64_t iteration) const;
  std::int64_t groups() const { return (iterations + iterations_together - 1) / iterations_together; }
  // The lowest element in the iteration's group of `iterations_together` iterations.
  std::int64_t first_together(std::int64_t iteration) const;
  // Call after the last iteration of each group.
  void add_products(const KernelArgs& args, std::int64_t iteration);
};

}  // namespace syncline
