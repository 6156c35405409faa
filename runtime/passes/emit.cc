// emit: makes steps with operand pointers from tasks.
#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "ops/control/loop.h"
#include "ops/graph/leaf.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/step_values.h"
#include "runtime/placement/collectives.h"
#include "runtime/plan/scratch_guard.h"
#include "runtime/plan/step_profile.h"
#include "runtime/schedule/transfer_names.h"

namespace syncline {

class Emitter {
 public:
  explicit Emitter(Schedule& schedule)
      : schedule_(schedule),
        request_(schedule.request),
        local_(schedule.local()),
        names_(schedule.nodes, schedule.roots, schedule.request.updates),
        profiler_(request_.strategy, request_.updates, std::span(schedule.roots).subspan(schedule.outputs()),
                  request_.layers),
        values_(schedule, plan_.metas_, plan_.values_) {
    plan_.steps_.reserve(schedule.tasks.size());
    plan_.fused_ = std::move(schedule.programs);
    plan_.loops_ = std::move(schedule.bodies);
    plan_.part_sums_ = std::move(schedule.part_sums);
    plan_.borders_ = std::move(schedule.borders);
    for (const Update& update : request_.updates)
      if (update.target.state().shared() != nullptr) plan_.exchanged_.push_back(&update.target.state());
  }

  Plan run() {
    Guards open;            // of the current run of tasks
    std::size_t first = 0;  // the step of its first guard
    for (Task& next : schedule_.tasks) {
      const Task task = std::move(next);  // steps reuse its memory
      if (task.guards != open) {
        close_guards(first, open.size());
        open = task.guards;
        first = plan_.steps_.size();
        for (const Guard& guard : open) emit_guard(guard);
      }
      emit(task);
    }
    close_guards(first, open.size());
    emit_assignments();
    finish();
    return std::move(plan_);
  }

 private:
  // Adds a pointer that Plan::bind and Plan::run set.
  std::size_t slot(const Location& at) {
    slots_.push_back(at);
    return slots_.size() - 1;
  }

  void emit_guard(const Guard& guard) {
    Step step;
    step.kind = Step::kGuard;
    step.needed_if = guard.needed_if;
    add_step(std::move(step), {&guard.condition, 1}, {});
  }

  // Lets `count` guards from step `first` on jump to the current end.
  void close_guards(std::size_t first, std::size_t count) {
    const std::size_t end = plan_.steps_.size();
    for (std::size_t i = first; i < first + count; ++i) {
      Step& step = plan_.steps_[i];
      step.index = static_cast<int>(end);
      step.label = join_text(step.needed_if ? "if, " : "unless, ", end - first - count, " steps");
    }
  }

  void emit(const Task& task) {
    if (task.epilogue) return emit_epilogue(task);
    switch (task.kind) {
      case Task::kKernel: emit_kernel(task); break;
      case Task::kFused: emit_fused(task); break;
      case Task::kReduce: emit_reduce(task); break;
      case Task::kAllReduce:
      case Task::kReduceScatter: emit_sums(task); break;
      case Task::kAllGather: emit_all_gather(task); break;
      case Task::kLoop: emit_loop(task); break;
      case Task::kBarrier: emit_barrier(); break;
      case Task::kWait: push_bare(Step::kWait, transfer_index_.at(task.transfer), "wait", "wait"); break;
    }
    last_step().may_throw = task.may_throw;
    last_step().args.parts = task.parts;
  }

  void emit_barrier() {  // variables change behind it
    if (!std::exchange(writes_variable_, true)) plan_.first_write_ = plan_.steps_.size();
    const int index = static_cast<int>(plan_.transfers_.size());
    Transfer& barrier = plan_.transfers_.emplace_back();
    barrier.kind = Transfer::kBarrier;
    barrier.bucket = static_cast<std::uint32_t>(index);
    barrier.names = request_.strategy->name("the end of a step");
    push_bare(Step::kStart, index,
              plan_.exchanged_.empty() ? "barrier: a rank alone may refuse a value"
                                       : "barrier: shared variables have new values",
              "barrier");
    push_bare(Step::kWait, index, "wait", "barrier");
  }

  Step& last_step() { return plan_.steps_.back(); }

  void push_bare(Step::Kind kind, int index, std::string label, const char* profiled_as) {
    Step step;
    step.kind = kind;
    step.index = index;
    step.label = std::move(label);
    push_step(std::move(step), std::span<const Expr>(), std::span<const Expr>());
    profiler_.add(profiled_as, last_step());
  }

  // Of values or locations. A step's operands have consecutive slots; its outputs too.
  template <class T>
  void push_step(Step step, std::span<T> in, std::span<T> out) {
    first_slot_.emplace_back(slots_.size(), slots_.size() + in.size());
    for (const auto& value : in) slot(locate(value));
    for (const auto& value : out) output_slot(locate(value), plan_.steps_.size());
    plan_.steps_.push_back(std::move(step));
  }

  void output_slot(const Location& at, std::size_t step) {
    if (schedule_.memory[at.buffer].kind == Buffer::kFixed && !std::exchange(writes_variable_, true))
      plan_.first_write_ = step;
    slot(at);
  }

  Location locate(const Expr& value) const { return schedule_.memory.locate(value, local_); }
  static Location locate(const Location& at) { return at; }

  void add_step(Step step, std::span<const Expr> in, std::span<const Expr> out) {
    step.args.in_meta = values_.metas(in);
    step.args.out_meta = values_.metas(out);
    step.reads = values_.of_all(in);
    step.writes = values_.of_all(out);
    push_step(std::move(step), in, out);
  }

  void add_scratch(const Task& task) {
    if (task.scratch < 0) return;
    const std::size_t guard = verifies_plans() ? schedule_.memory[task.scratch].life.bytes - ScratchGuard::kBytes : 0;
    plan_.scratch_slots_.push_back({plan_.steps_.size() - 1, slot({task.scratch, 0}), guard});
  }

  void emit_kernel(const Task& task) {
    const Expr& value = task.nodes[0];
    const OpDef& op = value.op();
    Step step;
    step.run = op.run;
    step.attrs = value.node().attrs.get();
    step.label.append(op.name).append("(").append(op.print(step.attrs)).append(")");
    step.args.slice = local_.slice(value);
    step.kind = task.part_sum < 0 ? Step::kKernel : Step::kPartSum;
    step.index = task.part_sum;
    if (RandomOp* random_op = random_op_of(value.node())) {
      step.args.random_runs = request_.random_runs(*random_op);
      plan_.add_random_op(random_op);
    }
    plan_.keep_.push_back(value);
    add_step(std::move(step), task.reads, task.writes);
    add_scratch(task);
    profiler_.add_kernel(op, last_step());
  }

  void emit_fused(const Task& task) {
    Step step;
    step.kind = Step::kFused;
    step.index = task.program;
    step.label = "fused" + values_.ops_of(task.nodes) + values_.ops_of(task.joined);
    keep_constants(task);
    add_step(std::move(step), task.reads, task.writes);
    if (!task.by_rank.empty()) {
      last_step().by_rank = static_cast<int>(plan_.rank_parts_.size());
      plan_.rank_parts_.push_back(rank_parts(task, schedule_));
    }
    add_term_sums(task);
    profiler_.add_program("fused", program_of(task), last_step());
  }

  // Adds the program to the step of the kernel before it.
  void emit_epilogue(const Task& task) {
    Step& step = last_step();
    step.label += ", then" + values_.ops_of(task.nodes) + values_.ops_of(task.joined);
    const Expr kernel = step.writes[0].value;
    const auto is_kernels = [&](const Expr& value) { return local_.resolve(value).base == kernel; };
    std::vector<Expr> others;
    std::ranges::remove_copy_if(task.reads, std::back_inserter(others), is_kernels);
    step.reads = values_.with_more(step.reads, others);
    step.writes = values_.with_more(step.writes, task.writes);
    keep_constants(task);
    const std::size_t at = plan_.steps_.size() - 1, in = slots_.size(), out = in + task.reads.size();
    for (const Expr& value : task.reads) slot(locate(value));
    for (const Expr& value : task.writes) output_slot(locate(value), at);
    epilogues_.push_back({at, in, out, slots_.size(), static_cast<std::size_t>(task.program)});
    const bool over = std::ranges::any_of(task.writes, [&](const Expr& e) { return locate(e) == locate(kernel); });
    profiler_.add_epilogue(program_of(task), (over ? 2.0 : 1.0) * static_cast<double>(local_.bytes(kernel)), step);
  }

  void emit_reduce(const Task& task) {
    const Expr& value = task.nodes.back();
    Step step;
    step.kind = Step::kReduce;
    step.index = task.program;
    step.run_program = value.op().run_program;
    step.attrs = value.node().attrs.get();
    step.label = "reduce" + values_.ops_of(task.nodes) + "(" + value.op().print(step.attrs) + ")";
    plan_.keep_.push_back(value);  // all reductions have equal attributes
    keep_constants(task);
    add_step(std::move(step), task.reads, task.writes);
    profiler_.add_program("reduce", program_of(task), last_step());
    last_step().args.in_meta = values_.metas({&value.input(0), 1});
    add_scratch(task);
  }

  const kernels::FusedProgram& program_of(const Task& task) const {
    return plan_.fused_[static_cast<std::size_t>(task.program)];
  }

  void keep_constants(const Task& task) {
    for (const Expr& value : task.reads)
      if (value.is<Constant>()) plan_.keep_.push_back(value);
  }

  void add_term_sums(const Task& task) {
    for (std::size_t i = 0; i < task.reads.size(); ++i) {
      if (program_of(task).inputs[i].spread != kernels::FusedProgram::Input::kComputed) continue;
      plan_.term_sums_.emplace_back(first_slot_.back().first + i, schedule_.memory.shared_offset(locate(task.reads[i])),
                                    task.reads[i].dtype());
    }
  }

  void emit_copy(const Location& from, const Location& to, std::int64_t bytes, std::string label) {
    static constexpr NoAttrs kNone;
    Step step;
    step.run = def_of<Copy>().run;
    step.attrs = &kNone;
    step.label = std::move(label);
    step.args.in_meta = plan_.metas_.add(1, [&](std::size_t) { return Meta{DType::kUint8, Shape{bytes}}; });
    step.args.out_meta = step.args.in_meta;
    push_step(std::move(step), std::span(&from, 1), std::span(&to, 1));
    profiler_.add("copy", last_step(), {0, 2 * static_cast<double>(bytes)});
  }

  // Terms and sums lie in one region.
  void emit_sums(const Task& task) {
    const Expr& first = task.nodes[0];
    const Location region{locate(first).buffer, 0};
    const bool scatters = task.kind == Task::kReduceScatter;
    for (const Expr& node : task.nodes) {
      const Location from = locate(node.input(0)), to = scatters ? region : locate(node);
      if (!(from == to)) emit_copy(from, to, local_.bytes(node.input(0)), "copy into the bucket");
    }
    const DType dtype = first.dtype() == DType::kBool ? DType::kUint8 : first.dtype();  // bytes 0 and 1
    Transfer transfer{.kind = scatters ? Transfer::kReduceScatter : Transfer::kAllReduce, .dtype = dtype};
    if (scatters) {
      transfer.counts = local_.elements_by_rank(first);
      transfer.in_place = task.in_place;
      transfer.why =
          task.in_place ? "the ranks' terms are added where they are read" : "each rank needs its own rows of the sum";
    } else {
      transfer.from = first.attrs<AllReduce::Attrs>().from;
      transfer.count = static_cast<std::int64_t>(schedule_.memory[region.buffer].life.bytes / size_of(dtype));
      transfer.why = why_reduced(transfer.from, task.nodes.size(), task.bucketed);
    }
    emit_transfer(task, std::move(transfer), region, region);
  }

  void emit_all_gather(const Task& task) {
    const Expr& part = task.nodes[0].input(0);
    Transfer transfer{.kind = Transfer::kAllGather, .counts = local_.elements_by_rank(part)};
    for (std::int64_t& count : transfer.counts) count *= static_cast<std::int64_t>(size_of(part.dtype()));
    transfer.in_place = task.in_place;
    transfer.on_nodes = schedule_.memory[locate(task.nodes[0]).buffer].kind == Buffer::kVariable;
    transfer.why = task.in_place ? "rows are read where they are" : "whole rows are needed";
    emit_transfer(task, std::move(transfer), locate(part), locate(task.nodes[0]));
  }

  void emit_transfer(const Task& task, Transfer transfer, const Location& from, const Location& to) {
    transfer.bucket = static_cast<std::uint32_t>(plan_.transfers_.size());
    if (transfer.in_place) plan_.memory_of_.resize(static_cast<std::size_t>(request_.strategy->size()));
    Step step;
    step.kind = Step::kStart;
    step.index = transfer_index_[task.transfer] = static_cast<int>(plan_.transfers_.size());
    transfer.names =
        request_.strategy->name(names_.of(task.nodes) + (request_.name.empty() ? "" : " in " + request_.name));
    step.label = join_text(task.nodes[0].op().name, ": ", transfer.why);
    step.args.out_meta = values_.metas(task.nodes);
    std::vector<Expr> parts;
    for (const Expr& node : task.nodes) parts.push_back(node.input(0));
    step.reads = values_.of_all(parts);
    step.writes = values_.of_all(task.nodes);
    plan_.transfers_.push_back(std::move(transfer));
    push_step(std::move(step), std::span(&from, 1), std::span(&to, 1));
    profiler_.add(task.nodes[0].op().name, last_step());
  }

  void emit_loop(const Task& task) {
    LoopStep& lowered = plan_.loops_[static_cast<std::size_t>(task.body)];
    for (RandomOp* op : lowered.body.random_ops()) plan_.add_random_op(op);
    Step step;
    step.kind = Step::kLoop;
    step.index = task.body;
    step.label = join_text("loop, ", lowered.iterations, " iterations of ", lowered.body.steps().size(), " steps");
    for (const Expr& product : task.products)
      step.label += join_text("; every ", lowered.iterations_together, " iterations ", product.op().name);
    plan_.keep_.push_back(task.nodes[0]);
    plan_.keep_.insert(plan_.keep_.end(), task.products.begin(), task.products.end());
    add_step(std::move(step), task.reads, task.writes);
    add_scratch(task);
    profiler_.add("loop", last_step());
    for (std::size_t i = 0; i < task.products.size(); ++i) {
      const Expr& product = task.products[i];
      profiler_.add_product(last_step(), values_.of(product), local_.metas(product.node().inputs), lowered.groups(),
                            lowered.products[i]);
    }
  }

  // Copies new values that were not computed in the variable.
  void emit_assignments() {
    for (std::size_t i = 0; i < request_.updates.size(); ++i) {
      VariableState& state = request_.updates[i].target.state();
      if (state.shared() != nullptr) continue;
      const Location to{schedule_.memory.of_variable(state), 0}, from = locate(schedule_.new_value(i));
      if (!(from == to))
        emit_copy(from, to, static_cast<std::int64_t>(state.value().bytes()), "assign " + state.name());
    }
  }

  void finish() {
    for (std::size_t i = 0; i < request_.outputs.size(); ++i)
      plan_.outputs_.push_back({slot(locate(schedule_.roots[i])), local_.meta(schedule_.roots[i])});
    plan_.arena_bytes_ = schedule_.memory.arena_bytes();
    plan_.shared_bytes_ = schedule_.memory.shared_bytes();
    plan_.leased_bytes_ = schedule_.memory.leased_bytes();
    plan_.leases_end_ = schedule_.leases_end;
    plan_.pointers_.resize(slots_.size() + 1, nullptr);
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      const Buffer& buffer = std::as_const(schedule_.memory)[slots_[s].buffer];
      const auto offset = static_cast<std::size_t>(slots_[s].offset);
      if (buffer.kind == Buffer::kArena) plan_.arena_slots_.push_back({s, buffer.life.offset + offset});
      else if (buffer.kind == Buffer::kShared) plan_.shared_slots_.push_back({s, buffer.life.offset + offset});
      else if (buffer.kind == Buffer::kVariable)
        plan_.variable_slots_.push_back({s, buffer.variable, buffer.next, offset});
      else if (buffer.kind == Buffer::kFeed) plan_.feed_slots_.push_back({s, buffer.feed, buffer.feed_offset + offset});
      else plan_.pointers_[s] = static_cast<std::byte*>(buffer.address) + offset;
    }
    for (std::size_t i = 0; i < plan_.steps_.size(); ++i) {
      Step& step = plan_.steps_[i];
      step.args.in = plan_.pointers_.data() + first_slot_[i].first;
      step.args.out = plan_.pointers_.data() + first_slot_[i].second;
      step.args.is_primary = request_.strategy == nullptr || request_.strategy->rank() == 0;
      if (step.kind != Step::kStart)  // a transfer writes only when all ranks have started it
        step.writes_shared_from = schedule_.memory.first_shared_byte(
            std::span(slots_).subspan(first_slot_[i].second, step.args.out_meta.size()));
    }
    plan_.epilogues_.reserve(epilogues_.size());
    for (const auto& [i, in, out, end, program] : epilogues_) {
      Step& step = plan_.steps_[i];
      step.args.epilogue = &plan_.epilogues_.emplace_back(plan_.fused_[program], plan_.pointers_.data() + in,
                                                          plan_.pointers_.data() + out);
      step.writes_shared_from = std::min(step.writes_shared_from,
                                         schedule_.memory.first_shared_byte(std::span(slots_).subspan(out, end - out)));
    }
    plan_.work_ = profiler_.work_of(plan_.steps_, plan_.loops_, local_);
    if (!request_.draw_in_iteration) plan_.profile_ = profiler_.plan(request_.name, plan_.work_);
    plan_.tickets_.resize(plan_.transfers_.size());
    for (const Expr& root : schedule_.roots) plan_.keep_.push_back(root);
    plan_.add_variables(schedule_.nodes, request_.updates);
    if (!writes_variable_) plan_.first_write_ = plan_.steps_.size();
  }

  Schedule& schedule_;
  const CompileRequest& request_;
  const LocalView local_;
  const TransferNames names_;
  const StepProfiler profiler_;
  Plan plan_;
  StepValues values_;
  std::vector<Location> slots_;
  std::vector<std::pair<std::size_t, std::size_t>> first_slot_;  // per step: of operands, of outputs
  struct EpilogueSlots {
    std::size_t step, in, out, end, program;
  };
  std::vector<EpilogueSlots> epilogues_;
  std::unordered_map<int, int> transfer_index_;
  bool writes_variable_ = false;
};

Plan emit(Schedule schedule) { return Emitter(schedule).run(); }

}  // namespace syncline
