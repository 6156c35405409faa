// Plan: a graph turned into steps over fixed memory, for one set of fed shapes. Made once (runtime/passes/compile.h),
// run many times; a run allocates nothing.
//
// A plan keeps the graph's attributes, constants and variables alive. It belongs to one session; one thread runs it at
// a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/graph/op.h"
#include "ops/kernels/fused/fused.h"
#include "runtime/placement/distributor.h"
#include "syncline/backend/variable.h"

namespace syncline {

class Session;
struct LoopStep;

// For people who look at a plan: a value that a step reads or computes.
struct StepValue {
  Expr value;  // a view stands for what it looks at
  Placement at;
  std::string assigned;  // the variable whose new value it is
};

struct Step {
  enum Kind : std::uint8_t { kKernel, kFused, kStart, kWait, kLoop, kGuard };
  Kind kind = kKernel;
  int index = -1;           // of the fused program, the transfer or the loop; a guard's: of the step to go on with
  int by_rank = -1;         // of a fused step's RankParts
  bool may_refuse = false;  // throws for some values that it may read
  std::size_t writes_shared_from = SIZE_MAX;  // no byte of the shared memory before this one, on any rank
  bool needed_if = false;                     // a guard goes on there if its operand is not this
  void (*run)(const void* attrs, const KernelArgs& args) = nullptr;
  const void* attrs = nullptr;
  KernelArgs args;
  std::vector<Meta> in_meta, out_meta;  // what args point to
  std::string label;                    // for people, as are
  std::vector<StepValue> reads, writes;
};

// Of a fused step with operands that were gathered in place: it goes through the ranks' elements, and reads those of
// each rank in its memory.
struct RankParts {
  std::vector<std::int64_t> begin;    // one more than there are ranks
  std::vector<std::size_t> operands;  // those
  std::vector<std::size_t> offsets;   // theirs in the shared memory
  std::vector<const void*> in;        // of all operands, for one rank; filled in each time
};

class Plan {
 public:
  Plan();
  ~Plan();
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;

  // Memory that the steps compute in; must be bound before the first run and again when it moves.
  std::size_t arena_bytes() const { return arena_bytes_; }
  // Memory for the buckets, which may be shared with other ranks.
  std::size_t shared_bytes() const { return shared_bytes_; }
  void bind(std::byte* arena, std::byte* shared = nullptr, const Distributor* distributor = nullptr);
  // feeds: one pointer for each placeholder, in the order given to compile(). Throws what the wire and the kernels
  // throw; no transfer is under way then, so that the arena and the feeds may go. `listens`: until it writes to a
  // variable, it may be interrupted (Session::set_interruption).
  void run(Session& session, std::span<const void* const> feeds, bool listens = true);
  // After a run, until the next: output i's bytes on this rank, and their shape.
  const void* output(std::size_t i) const { return pointers_[outputs_[i].slot]; }
  const Meta& output_meta(std::size_t i) const { return outputs_[i].meta; }
  std::size_t outputs() const { return outputs_.size(); }

  // Whether a run meets other ranks, in a loop's body or outside.
  bool has_transfers() const;
  // Whether a run may refuse a value (OpDef::may_refuse).
  bool may_refuse() const;
  // Each once.
  std::span<RandomOp* const> random_ops() const { return random_ops_; }
  const std::vector<std::shared_ptr<VariableState>>& variables() const { return variables_; }
  std::uint64_t fingerprint() const { return fingerprint_; }
  void set_fingerprint(std::uint64_t fingerprint);  // also of the bodies' plans
  const std::vector<Step>& steps() const { return steps_; }
  // One line a step: what runs, on which shapes, where each transfer stands and why.
  std::string describe() const;

 private:
  friend class Emitter;
  struct ArenaSlot {
    std::size_t slot, offset;
  };
  struct FeedSlot {
    std::size_t slot, feed, offset;
  };
  struct ScratchSlot {
    std::size_t step, slot;
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

  std::vector<Step> steps_;
  std::vector<void*> pointers_;  // all steps' operands
  std::vector<ArenaSlot> arena_slots_, shared_slots_;
  std::vector<FeedSlot> feed_slots_;
  std::vector<ScratchSlot> scratch_slots_;
  std::vector<Output> outputs_;
  std::vector<kernels::FusedProgram> fused_;
  std::vector<RankParts> rank_parts_;
  std::vector<const std::byte*> memory_of_;  // each rank's shared memory
  std::vector<Transfer> transfers_;
  std::vector<std::uint64_t> tickets_;  // 0: the transfer is not under way
  std::vector<LoopStep> loops_;
  std::vector<std::shared_ptr<VariableState>> variables_;
  std::vector<Expr> keep_;  // attributes and constants live as long as their nodes
  std::size_t arena_bytes_ = 0, shared_bytes_ = 0;
  std::size_t lent_bytes_ = 0;   // of the shared memory, which other ranks read
  std::size_t first_write_ = 0;  // the first step that writes to a variable
  std::uint64_t fingerprint_ = 0;
  std::vector<RandomOp*> random_ops_;  // of nodes that are kept
};

// A loop within a plan. The step's operands are the sequences, the initial states and the captures; its outputs the
// final states, the stacks and sums of those taps that are read, and sums over the rows of all turns. The step's
// scratch is the body's arena and, behind it, memory for states. A turn writes its states where the next one reads
// them: in the stack of a tap that holds them anyway, or by turns in the output and in the scratch.
struct LoopStep {
  Plan body;  // feeds: elements, states, captures; outputs: next states, taps
  std::int64_t turns = 0;
  std::int64_t first_turn = 0;  // the number of this rank's first one among the turns of all
  bool reverse = false;
  std::vector<std::size_t> element_bytes;  // of one turn
  struct State {
    std::size_t bytes;
    std::size_t at;           // in the scratch
    int tap_before, tap_now;  // the stacks that hold it as it comes into a turn, and as it leaves; or -1
  };
  std::vector<State> states;
  struct Tap {
    std::size_t bytes;  // of one turn
    bool sum;           // added up instead of stacked
    DType dtype;
    bool passing;    // a stack of a few turns only, in the scratch, for products; behind all others
    std::size_t at;  // there
  };
  std::vector<Tap> taps;
  // A sum over the rows of all turns, of stacks of this loop and of sequences from outside.
  struct Product {
    struct Operand {
      int in, tap;  // of the step, or -1
      std::size_t bytes;
    };
    void (*run)(const void* attrs, const KernelArgs& args);
    void (*run_more)(const void* attrs, const KernelArgs& args);
    const void* attrs;
    std::vector<Operand> operands;
    std::vector<Meta> in_meta, out_meta;  // the former of as many turns as go together
    std::vector<const void*> in;
  };
  std::vector<Product> products;  // the step's last outputs
  std::int64_t turns_together = 1;
  std::size_t scratch_bytes = 0;
  std::vector<const void*> feeds;  // of the body, then memory for its outputs; filled in each turn
  // What a random op of the body draws by: another number in each turn.
  struct Draw {
    const RandomOp* op;
    const std::uint64_t* step;  // of the op outside the loop
    std::uint64_t in_turn = 0;
  };
  std::vector<std::unique_ptr<Draw>> draws;

  // The element that a turn, in running order, is about.
  std::int64_t element_of(std::int64_t turn) const { return reverse ? turns - 1 - turn : turn; }
  // Where a turn puts tap i, and state i for the next turn.
  void* memory_of_tap(const KernelArgs& args, std::size_t i, std::int64_t turn) const;
  void* memory_of_state(const KernelArgs& args, std::size_t i, std::int64_t turn) const;
  // The first element of those that go together with a turn's.
  std::int64_t first_together(std::int64_t turn) const;
  // When a turn has been the last of those that go together.
  void add_products(const KernelArgs& args, std::int64_t turn);
};

}  // namespace syncline
