#include "runtime/plan/plan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <utility>

#include "base/convert.h"
#include "ops/graph/leaf.h"
#include "runtime/plan/scratch_guard.h"
#include "runtime/plan/step_profile.h"
#include "syncline/backend/random.h"
#include "syncline/session.h"
#include "syncline/timeline.h"

namespace syncline {
namespace {

void add_to(DType dtype, void* sum, const void* value, std::size_t bytes) {
  with_dtype(dtype, [&]<class T>(T) {
    auto* to = static_cast<T*>(sum);
    const auto* from = static_cast<const T*>(value);
    for (std::size_t i = 0; i < bytes / sizeof(T); ++i) to[i] = static_cast<T>(wrapping(to[i]) + wrapping(from[i]));
  });
}

// Records on the timeline a step's computation between calls of the communicator.
class Computation {
 public:
  Computation(bool calls, std::uint64_t plan, std::uint64_t step) : calls_(calls) {
    event_ = {.category = "compute", .name = "compute", .has_tag = true, .plan = plan, .step = step};
    begin();
  }
  ~Computation() { end(); }
  Computation(const Computation&) = delete;
  Computation& operator=(const Computation&) = delete;

  // Ends the event before a call and begins the next event after it.
  class Pause {
   public:
    Pause(Computation& computation, std::uint32_t bucket) : computation_(computation) {
      computation_.event_.bucket = bucket;
      computation_.end();
    }
    ~Pause() { computation_.begin(); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Computation& computation_;
  };

 private:
  void begin() {
    event_.bucket = -1;
    if (calls_ && timeline::on()) event_.begin = timeline::now();
  }
  void end() {
    if (event_.begin == 0) return;
    event_.end = timeline::now();
    timeline::record(event_);
    event_.begin = 0;
  }

  const bool calls_;  // otherwise the step's own event covers the computation
  timeline::Event event_;
};

// Marks memory as leased when a run ends: other ranks may still read it.
class Lease {
 public:
  Lease(Strategy* strategy, std::size_t bytes) : strategy_(strategy), bytes_(bytes) {}
  ~Lease() {
    if (bytes_ > 0) strategy_->lease(bytes_);
  }
  void end() { bytes_ = 0; }  // a transfer came behind all reads
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

 private:
  Strategy* const strategy_;
  std::size_t bytes_;
};

// A loop without iterations.
void skip_loop(const LoopStep& loop, const KernelArgs& args) {
  const std::size_t n_states = loop.states.size();
  for (std::size_t i = 0; i < n_states; ++i)
    std::memcpy(args.out[i], args.in[loop.element_bytes.size() + i], loop.states[i].bytes);
  for (std::size_t i = 0; i < loop.residuals.size(); ++i)
    if (loop.residuals[i].sum) std::memset(args.out[n_states + i], 0, loop.residuals[i].bytes);
}

}  // namespace

void* LoopStep::memory_of_residual(const KernelArgs& args, std::size_t i, std::int64_t iteration) const {
  const Residual& residual = residuals[i];
  if (residual.passing)
    return static_cast<std::byte*>(args.scratch) + residual.at +
           static_cast<std::size_t>(element_of(iteration) - first_together(iteration)) * residual.bytes;
  return static_cast<std::byte*>(args.out[states.size() + i]) +
         (residual.sum ? 0 : static_cast<std::size_t>(element_of(iteration)) * residual.bytes);
}

std::int64_t LoopStep::first_together(std::int64_t iteration) const {
  const std::int64_t first = iteration / iterations_together * iterations_together;
  return reverse ? std::max<std::int64_t>(iterations - first - iterations_together, 0) : first;
}

void LoopStep::add_products(const KernelArgs& args, std::int64_t iteration) {
  const std::int64_t begin = first_together(iteration), count = iteration % iterations_together + 1;
  for (std::size_t i = 0; i < products.size(); ++i) {
    Product& product = products[i];
    for (std::size_t k = 0; k < product.operands.size(); ++k) {
      const Product::Operand& operand = product.operands[k];
      product.in_meta[k].shape[0] = count;
      const auto residual = static_cast<std::size_t>(operand.residual);
      product.in[k] =
          operand.residual < 0
              ? static_cast<const std::byte*>(args.in[operand.in]) + static_cast<std::size_t>(begin) * operand.bytes
              : memory_of_residual(args, residual, reverse ? iteration : iteration + 1 - count);
    }
    void* out[] = {args.out[args.out_meta.size() - products.size() + i]};
    KernelArgs of_product;
    of_product.in = product.in.data();
    of_product.out = out;
    of_product.in_meta = product.in_meta;
    of_product.out_meta = product.out_meta;
    of_product.scratch = args.scratch;
    const ProfileSpan profiled(product.profile);
    (iteration < iterations_together ? product.run : product.accumulate)(product.attrs, of_product);
  }
}

void* LoopStep::memory_of_state(const KernelArgs& args, std::size_t i, std::int64_t iteration) const {
  const State& state = states[i];
  const std::int64_t left = iterations - 1 - iteration;
  if (left == 0) return args.out[i];
  if (state.residual_before >= 0)
    return memory_of_residual(args, static_cast<std::size_t>(state.residual_before), iteration + 1);
  if (state.residual_now >= 0) return memory_of_residual(args, static_cast<std::size_t>(state.residual_now), iteration);
  return left % 2 == 0 ? args.out[i] : static_cast<std::byte*>(args.scratch) + state.at;
}

Plan::Plan() = default;
Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

void TermSum::read(std::int64_t begin, std::int64_t count, void* to) const {
  const std::size_t from = offset + static_cast<std::size_t>(begin) * size_of(dtype);
  if (terms.size() == 1) {
    std::memcpy(to, terms[0] + from, static_cast<std::size_t>(count) * size_of(dtype));
    return;
  }
  std::array<const void*, kMostRanks> block;
  for (std::size_t r = 0; r < terms.size(); ++r) block[r] = terms[r] + from;
  strategy->add_terms(dtype, std::span(block).first(terms.size()), to, count);
}

void Plan::bind(std::byte* arena, std::byte* shared, const Strategy* strategy) {
  for (std::size_t r = 0; r < memory_of_.size(); ++r) {
    memory_of_[r] = strategy->shared_memory_of(static_cast<int>(r));
    if (memory_of_[r] == nullptr) memory_of_[r] = shared;  // all ranks' parts are gathered there
  }
  for (const ArenaSlot& s : shared_slots_) pointers_[s.slot] = shared + s.offset;
  for (TermSum& sum : term_sums_) {
    const bool mapped = strategy->shared_memory_of(0) != nullptr;
    sum.strategy = strategy;
    sum.terms = mapped ? memory_of_ : std::vector<const std::byte*>{shared};
    pointers_[sum.slot] = static_cast<kernels::BlockSource*>(&sum);
  }
  for (const ArenaSlot& s : arena_slots_) pointers_[s.slot] = arena + s.offset;
  for (const ScratchSlot& s : scratch_slots_) {
    Step& step = steps_[s.step];
    step.args.scratch = pointers_[s.slot];
    if (s.guard > 0) step.scratch_end = static_cast<std::byte*>(step.args.scratch) + s.guard;
    if (step.kind == Step::kLoop)
      loops_[static_cast<std::size_t>(step.index)].body.bind(static_cast<std::byte*>(step.args.scratch));
  }
}

bool Plan::has_transfers() const {
  return !transfers_.empty() ||
         std::any_of(loops_.begin(), loops_.end(), [](const LoopStep& loop) { return loop.body.has_transfers(); });
}

bool Plan::may_throw() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const Step& step) { return step.may_throw; });
}

void Plan::set_fingerprint(std::uint64_t fingerprint) {
  fingerprint_ = fingerprint;
  for (std::size_t i = 0; i < loops_.size(); ++i) loops_[i].body.set_fingerprint(attrs::mix(fingerprint, i + 1));
}

void Plan::run(Session& session, std::span<const void* const> feeds, bool listens) {
  for (const FeedSlot& s : feed_slots_)
    pointers_[s.slot] = const_cast<std::byte*>(static_cast<const std::byte*>(feeds[s.feed])) + s.offset;
  for (const VariableSlot& s : variable_slots_) {
    const VariableState::Shared* shared = s.variable->shared();
    if (s.next && shared == nullptr)
      fail<Error>(
          "variable '", s.variable->name(),
          "' was shared by the ranks of a node, and another session has updated it alone; update it in one session");
    if (shared != nullptr && shared->split && shared->distribution != session.distribution())
      fail<Error>("variable '", s.variable->name(),
                  "' is split between the nodes of a job (SYNCLINE_OPTIMIZER_STATE); ", "use it in that job's session");
    const Array& memory = s.next ? shared->next : s.variable->value();
    pointers_[s.slot] = const_cast<std::byte*>(memory.raw()) + s.offset;
  }
  const ProfileSpan profiled(profile_, /*whole=*/true);
  try {
    run_steps(session, listens);
  } catch (...) {
    finish_transfers(session);
    throw;
  }
  for (VariableState* variable : exchanged_) variable->exchange();
}

// Completes this rank's part of all started transfers, so that an error on this rank alone does not block the others.
void Plan::finish_transfers(Session& session) noexcept {
  for (std::uint64_t& ticket : tickets_) {
    const std::uint64_t under_way = std::exchange(ticket, 0);
    if (under_way == 0) continue;
    try {
      session.strategy()->wait(under_way);
    } catch (...) {  // the communicator failed: all transfers have ended
    }
  }
}

void Plan::run_steps(Session& session, bool listens) {
  Computation computation(!transfers_.empty(), fingerprint_, session.steps());
  Strategy* const others = transfers_.empty() ? nullptr : session.strategy();
  Lease lease(others, leased_bytes_);
  for (std::size_t at = 0; at < steps_.size(); ++at) {
    const Step& step = steps_[at];
    const auto i = static_cast<std::size_t>(step.index);
    if (listens && at <= first_write_) session.interrupt_if_asked();
    const ProfileSpan profiled(step.profile);
    if (others != nullptr) {
      others->publish(fingerprint_, session.steps(), step.label);
      if (step.writes_shared_from < others->leased()) others->reclaim();
    }
    const timeline::Detail detail(step.label);
    const ScratchGuard guard(step.scratch_end);
    switch (step.kind) {
      case Step::kKernel: step.run(step.attrs, step.args); break;
      case Step::kPartSum: part_sums_[i].run(step.args); break;
      case Step::kFused: run_fused(step); break;
      case Step::kReduce: step.run_program(step.attrs, step.args, fused_[i]); break;
      case Step::kStart: {
        const Computation::Pause pause(computation, transfers_[i].bucket);
        tickets_[i] =
            session.strategy()->start(transfers_[i], fingerprint_, session.steps(), step.args.in[0], step.args.out[0]);
        break;
      }
      case Step::kWait: {
        const Computation::Pause pause(computation, transfers_[i].bucket);
        session.strategy()->wait(std::exchange(tickets_[i], 0));
        break;
      }
      case Step::kLoop: run_loop(session, step, listens && at < first_write_); break;
      case Step::kGuard:
        if (*static_cast<const bool*>(step.args.in[0]) != step.needed_if) at = i - 1;
        break;
    }
    guard.check(step.label);
  }
  if (leases_end_) lease.end();
  if (others != nullptr) others->publish(fingerprint_, session.steps(), "");
}

void Plan::add_random_op(RandomOp* op) {
  if (std::find(random_ops_.begin(), random_ops_.end(), op) == random_ops_.end()) random_ops_.push_back(op);
}

void Plan::add_variables(std::span<const std::shared_ptr<const Node>> nodes, std::span<const Update> updates) {
  std::set<const VariableState*> seen;
  const auto add = [&](const std::shared_ptr<VariableState>& state) {
    if (seen.insert(state.get()).second) variables_.push_back(state);
  };
  for (const auto& node : nodes)
    if (node->op == &def_of<VariableLeaf>()) add(static_cast<const VariableLeaf::Attrs*>(node->attrs.get())->state);
  for (const Update& u : updates) add(u.target.expr().attrs<VariableLeaf::Attrs>().state);
  for (const LoopStep& loop : loops_)
    for (const auto& state : loop.body.variables()) add(state);
}

void Plan::run_fused(const Step& step) {
  const kernels::FusedProgram& program = fused_[static_cast<std::size_t>(step.index)];
  if (step.by_rank < 0) return kernels::run_fused(program, step.args.in, step.args.out);
  RankParts& parts = rank_parts_[static_cast<std::size_t>(step.by_rank)];
  std::copy_n(step.args.in, parts.in.size(), parts.in.begin());
  for (std::size_t r = 0; r < memory_of_.size(); ++r) {
    for (std::size_t i = 0; i < parts.operands.size(); ++i)
      parts.in[parts.operands[i]] = memory_of_[r] + parts.offsets[i];
    kernels::run_fused(program, parts.in.data(), step.args.out, parts.begin[r], parts.begin[r + 1]);
  }
}

void Plan::run_loop(Session& session, const Step& step, bool listens) {
  LoopStep& loop = loops_[static_cast<std::size_t>(step.index)];
  const std::size_t n_elements = loop.element_bytes.size(), n_states = loop.states.size();
  const void* const* in = step.args.in;
  if (loop.iterations == 0) return skip_loop(loop, step.args);
  const std::size_t first_output = loop.feeds.size() - n_states - loop.residuals.size();
  for (std::size_t i = n_elements; i < first_output; ++i) loop.feeds[i] = in[i];
  for (std::int64_t iteration = 0; iteration < loop.iterations; ++iteration) {
    const auto at = static_cast<std::size_t>(loop.element_of(iteration));
    for (std::size_t i = 0; i < n_elements; ++i)
      loop.feeds[i] = static_cast<const std::byte*>(in[i]) + at * loop.element_bytes[i];
    for (std::size_t i = 0; i < n_states; ++i)
      loop.feeds[first_output + i] = loop.memory_of_state(step.args, i, iteration);
    void const** const residuals = loop.feeds.data() + first_output + n_states;
    for (std::size_t i = 0; i < loop.residuals.size(); ++i)
      residuals[i] = loop.memory_of_residual(step.args, i, iteration);
    // Derived from the element, so that the gradient's loop repeats the draws of the forward iteration.
    for (const auto& draw : loop.draws)
      draw->in_iteration = attrs::mix(*draw->step, static_cast<std::uint64_t>(loop.first_iteration) + at + 1);
    loop.body.run(session, loop.feeds, listens);
    for (std::size_t i = 0; i < loop.residuals.size(); ++i) {
      const void* value = loop.body.output(n_states + i);
      if (value == residuals[i]) continue;
      if (loop.residuals[i].sum && iteration > 0)
        add_to(loop.residuals[i].dtype, const_cast<void*>(residuals[i]), value, loop.residuals[i].bytes);
      else std::memcpy(const_cast<void*>(residuals[i]), value, loop.residuals[i].bytes);
    }
    // Write states after residuals, because a residual may read an incoming state.
    for (std::size_t i = 0; i < n_states; ++i) {
      void* const next = const_cast<void*>(loop.feeds[first_output + i]);
      if (const void* value = loop.body.output(i); value != next) std::memcpy(next, value, loop.states[i].bytes);
      loop.feeds[n_elements + i] = next;
    }
    const bool last = iteration + 1 == loop.iterations || (iteration + 1) % loop.iterations_together == 0;
    if (last && !loop.products.empty()) loop.add_products(step.args, iteration);
  }
}

std::string Plan::describe() const {
  std::string text;
  for (const Step& step : steps_) {
    text += describe_operands(step) + '\n';
    if (step.kind == Step::kLoop) text += loops_[static_cast<std::size_t>(step.index)].body.describe();
  }
  return text;
}

}  // namespace syncline
