// Third pass of a plan: tasks become steps over memory.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/convert.h"
#include "ops/control/loop.h"
#include "ops/core/fill.h"
#include "ops/leaf.h"
#include "ops/shape/join.h"
#include "runtime/collectives.h"
#include "runtime/schedule/bodies.h"
#include "runtime/schedule/buffers.h"
#include "runtime/schedule/commit.h"
#include "runtime/schedule/fold_products.h"
#include "runtime/schedule/join_outputs.h"
#include "runtime/schedule/leases.h"
#include "runtime/schedule/transfer_names.h"

namespace syncline {

class Lowering {
 public:
  explicit Lowering(const LowerRequest& request)
      : request_(request),
        local_(*request.placement, *request.shares),
        roots_(roots_of(request, local_)),
        tasks_(order_tasks()),
        buffers_(request, roots_, tasks_, local_),
        names_(roots_, request.updates) {
    for (std::size_t i = 0; i < request.updates.size(); ++i)
      assigned_[local_.resolve(roots_[request.outputs.size() + i]).base] = request.updates[i].target.name();
  }

  Plan run() {
    const Guards* open = nullptr;  // of the tasks last emitted
    std::size_t first = 0;         // the step of the first of these guards
    for (int t = 0; t < static_cast<int>(tasks_.size()); ++t) {
      if (open == nullptr || tasks_[t].guards != *open) {
        if (open != nullptr) close_guards(first, open->size());
        open = &tasks_[t].guards;
        first = plan_.steps_.size();
        for (const Guard& guard : *open) emit_guard(guard);
      }
      emit(t);
    }
    if (open != nullptr) close_guards(first, open->size());
    emit_assignments();
    finish();
    return std::move(plan_);
  }

 private:
  std::vector<Task> order_tasks() {
    std::vector<Task> tasks = make_tasks(roots_, local_, request_.distributor, request_.fuse);
    tasks = fold_products(join_outputs(std::move(tasks), roots_, local_), roots_, local_);
    for (Task& task : tasks) {  // before the order is decided, which depends on whether ranks meet in a loop
      if (task.kind != Task::kLoop) continue;
      task.lowered = static_cast<int>(plan_.loops_.size());
      plan_.loops_.push_back(lower_loop(task, local_, request_));
      task.meets = plan_.loops_.back().body.has_transfers();
      task.may_refuse = plan_.loops_.back().body.may_refuse();
    }
    return commit_last(std::move(tasks), roots_, request_, local_);
  }

  // A pointer that the plan keeps right.
  std::size_t slot(const Location& at) {
    slots_.push_back(at);
    return slots_.size() - 1;
  }

  void emit_guard(const Guard& guard) {
    Step step;
    step.kind = Step::kGuard;
    step.needed_if = guard.needed_if;
    add_step(std::move(step), {guard.condition}, {});
  }

  // These guards skip what has been emitted since.
  void close_guards(std::size_t first, std::size_t count) {
    const std::size_t end = plan_.steps_.size();
    for (std::size_t i = first; i < first + count; ++i) {
      Step& step = plan_.steps_[i];
      step.index = static_cast<int>(end);
      step.label = join_text(step.needed_if ? "if, " : "unless, ", end - first - count, " steps");
    }
  }

  void emit(int t) {
    const Task& task = tasks_[t];
    switch (task.kind) {
      case Task::kKernel: emit_kernel(task, t); break;
      case Task::kFused: emit_fused(task); break;
      case Task::kAllReduce: emit_all_reduce(task); break;
      case Task::kAllGather: emit_all_gather(task); break;
      case Task::kLoop: emit_loop(task, t); break;
      case Task::kMeeting: emit_meeting(); break;
      case Task::kWait: push_bare(Step::kWait, transfer_index_.at(task.transfer), "wait"); break;
    }
    plan_.steps_.back().may_refuse = task.may_refuse;
  }

  void emit_meeting() {
    const int index = static_cast<int>(plan_.transfers_.size());
    Transfer& meeting = plan_.transfers_.emplace_back();
    meeting.kind = Transfer::kMeeting;
    meeting.bucket = static_cast<std::uint32_t>(index);
    meeting.names = request_.distributor->name("the end of a step");
    push_bare(Step::kStart, index, "meeting: a rank alone may refuse a value");
    push_bare(Step::kWait, index, "wait");
  }

  void push_bare(Step::Kind kind, int index, std::string label) {
    Step step;
    step.kind = kind;
    step.index = index;
    step.label = std::move(label);
    push_step(std::move(step), {}, {});
  }

  // The slots of a step's operands are consecutive, and so are its outputs'.
  void push_step(Step step, std::span<const Location> in, std::span<const Location> out) {
    first_slot_.emplace_back(slots_.size(), slots_.size() + in.size());
    for (const Location& at : in) slot(at);
    for (const Location& at : out) slot(at);
    plan_.steps_.push_back(std::move(step));
  }

  std::vector<Location> locate(const std::vector<Expr>& values) {
    std::vector<Location> at;
    for (const Expr& value : values) at.push_back(buffers_.locate(value));
    return at;
  }

  std::vector<StepValue> named(const std::vector<Expr>& values) const {
    std::vector<StepValue> result;
    for (const Expr& value : values) {
      const Expr base = local_.resolve(value).base;
      StepValue named{base, local_.placement(base), {}};
      if (const auto found = assigned_.find(base); found != assigned_.end()) named.assigned = found->second;
      result.push_back(std::move(named));
    }
    return result;
  }

  void add_step(Step step, const std::vector<Expr>& in, const std::vector<Expr>& out) {
    for (const Expr& value : in) step.in_meta.push_back(local_.meta(value));
    for (const Expr& value : out) step.out_meta.push_back(local_.meta(value));
    step.reads = named(in);
    step.writes = named(out);
    push_step(std::move(step), locate(in), locate(out));
  }

  void add_scratch(std::size_t bytes, int t) {
    if (bytes > 0) plan_.scratch_slots_.push_back({plan_.steps_.size() - 1, slot(buffers_.scratch(bytes, t))});
  }

  void emit_kernel(const Task& task, int t) {
    const Expr& value = task.nodes[0];
    const OpDef& op = value.op();
    Step step;
    step.run = op.run;
    step.attrs = value.node().attrs.get();
    step.label = join_text(op.name, '(', op.print(step.attrs), ')');
    step.args.slice = local_.slice(value);
    if (RandomOp* random_op = random_op_of(value.node())) {
      step.args.random_step = request_.random_step(*random_op);
      plan_.add_random_op(random_op);
    }
    plan_.keep_.push_back(value);
    add_step(std::move(step), task.reads, task.writes);
    const Step& added = plan_.steps_.back();
    if (op.scratch != nullptr) add_scratch(op.scratch(added.attrs, added.in_meta, added.out_meta), t);
  }

  void emit_fused(const Task& task) {
    kernels::FusedSpec spec;
    spec.space = local_.meta(task.nodes.back()).shape;
    std::unordered_map<Expr, int, ExprHash> member, operand;
    std::vector<Expr> reads;
    auto input = [&](const Expr& value) {
      const auto [it, fresh] = operand.emplace(value, static_cast<int>(reads.size()));
      if (!fresh) return ~it->second;
      const bool window = std::find(task.windows.begin(), task.windows.end(), value) != task.windows.end();
      reads.push_back(value.is<Fill>() ? number(value) : window ? value.input(0) : value);
      spec.inputs.push_back(local_.meta(window ? value : reads.back()));
      spec.windows.push_back(window ? value.op().window(value.node().attrs.get(), local_.meta(reads.back()))
                                    : StridedWindow{});
      return ~it->second;
    };
    Step step;
    step.kind = Step::kFused;
    step.label = "fused";
    for (const Expr& value : task.nodes) {
      kernels::FusedNode node{&value.op(), value.node().attrs, {}, local_.meta(value)};
      for (const Expr& in : value.node().inputs) {
        const auto inside = member.find(in);
        node.operands.push_back(inside != member.end() ? inside->second : input(in));
      }
      member[value] = static_cast<int>(spec.nodes.size());
      spec.nodes.push_back(std::move(node));
      step.label += join_text(' ', value.op().name);
    }
    for (const Expr& value : task.writes) {
      const auto node = member.find(value);
      if (node == member.end()) add_parts(value, member, spec, step.label);
      spec.outputs.push_back(node == member.end() ? -1 : node->second);
      spec.overwrites.push_back(node == member.end() ? -1 : overwritten_input(value, reads));
    }
    plan_.fused_.push_back(kernels::fuse(spec));
    step.index = static_cast<int>(plan_.fused_.size()) - 1;
    add_step(std::move(step), reads, task.writes);
  }

  // The next output is a concatenation of members.
  void add_parts(const Expr& joined, const std::unordered_map<Expr, int, ExprHash>& member, kernels::FusedSpec& spec,
                 std::string& label) {
    std::vector<Meta> metas;
    for (const Expr& operand : joined.node().inputs) metas.push_back(local_.meta(operand));
    const std::vector<StridedWindow> windows = joined_windows(joined, metas);
    for (std::size_t i = 0; i < windows.size(); ++i)
      spec.parts.push_back(
          {member.at(joined.input(static_cast<int>(i))), static_cast<int>(spec.outputs.size()), windows[i]});
    label += join_text(' ', joined.op().name);
  }

  // A fill as the one element that a fused program needs of it.
  Expr number(const Expr& fill) {
    Array one(fill.dtype(), Shape{});
    with_stored_dtype(fill.dtype(), [&]<class T>(T) { *one.data<T>() = convert<T>(fill.attrs<Fill::Attrs>().value); });
    plan_.keep_.push_back(constant_of(std::move(one)));
    return plan_.keep_.back();
  }

  int overwritten_input(const Expr& output, const std::vector<Expr>& reads) {
    const Location out = buffers_.locate(output);
    for (std::size_t i = 0; i < reads.size(); ++i)
      if (buffers_.locate(reads[i]) == out) return static_cast<int>(i);
    return -1;
  }

  void emit_copy(const Location& from, const Location& to, std::int64_t bytes, std::string label) {
    static constexpr NoAttrs kNone;
    Step step;
    step.run = def_of<Copy>().run;
    step.attrs = &kNone;
    step.label = std::move(label);
    step.in_meta = {{DType::kUint8, Shape{bytes}}};
    step.out_meta = step.in_meta;
    push_step(std::move(step), {&from, 1}, {&to, 1});
  }

  void emit_all_reduce(const Task& task) {
    const Location region{buffers_.locate(task.nodes[0]).buffer, 0};
    for (const Expr& node : task.nodes) {
      const Location from = buffers_.locate(node.input(0)), to = buffers_.locate(node);
      if (!(from == to)) emit_copy(from, to, local_.bytes(node), "copy into the bucket");
    }
    Transfer transfer;
    transfer.kind = Transfer::kAllReduce;
    transfer.dtype = task.nodes[0].dtype();
    transfer.count = static_cast<std::int64_t>(buffers_.bytes_of(region.buffer) / size_of(transfer.dtype));
    transfer.why = task.bucketed ? join_text("bucket of ", task.nodes.size(), " sums over ranks")
                                 : std::string("a sum over ranks that is needed at once");
    emit_transfer(task, std::move(transfer), region, region);
  }

  void emit_all_gather(const Task& task) {
    const Expr& part = task.nodes[0].input(0);
    const int axis = local_.placement(part).axis;
    const Shape& shape = part.shape();
    const std::int64_t row = shape[axis] == 0 ? 0 : shape.size() / shape[axis];
    const RowShares& shares = local_.shares();
    Transfer transfer;
    transfer.kind = Transfer::kAllGather;
    for (int r = 0; r + 1 < static_cast<int>(shares.begin.size()); ++r)
      transfer.byte_counts.push_back((shares.at(r + 1, shape[axis]) - shares.at(r, shape[axis])) * row *
                                     static_cast<std::int64_t>(size_of(part.dtype())));
    transfer.why = "whole rows are needed";
    emit_transfer(task, std::move(transfer), buffers_.locate(part), buffers_.locate(task.nodes[0]));
  }

  void emit_transfer(const Task& task, Transfer transfer, const Location& from, const Location& to) {
    transfer.bucket = static_cast<std::uint32_t>(plan_.transfers_.size());
    transfer_index_[task.transfer] = static_cast<int>(plan_.transfers_.size());
    Step step;
    step.kind = Step::kStart;
    step.index = static_cast<int>(plan_.transfers_.size());
    transfer.names =
        request_.distributor->name(names_.of(task.nodes) + (request_.name.empty() ? "" : " in " + request_.name));
    step.label = join_text(transfer.kind == Transfer::kAllReduce ? "all_reduce: " : "all_gather: ", transfer.why);
    for (const Expr& node : task.nodes) step.out_meta.push_back(local_.meta(node));
    for (const Expr& node : task.nodes) step.reads.push_back(named({node.input(0)}).front());
    step.writes = named(task.nodes);
    plan_.transfers_.push_back(std::move(transfer));
    push_step(std::move(step), {&from, 1}, {&to, 1});
  }

  void emit_loop(const Task& task, int t) {
    const LoopStep& lowered = plan_.loops_[static_cast<std::size_t>(task.lowered)];
    for (RandomOp* op : lowered.body.random_ops()) plan_.add_random_op(op);
    Step step;
    step.kind = Step::kLoop;
    step.index = task.lowered;
    step.label = join_text("loop, ", lowered.turns, " turns of ", lowered.body.steps().size(), " steps");
    for (const Expr& product : task.products)
      step.label += join_text("; every ", lowered.turns_together, " turns ", product.op().name);
    plan_.keep_.push_back(task.nodes[0]);
    plan_.keep_.insert(plan_.keep_.end(), task.products.begin(), task.products.end());
    add_step(std::move(step), task.reads, task.writes);
    add_scratch(lowered.scratch_bytes, t);
  }

  // Updates whose value could not be computed in place, and those of values that already lie elsewhere.
  void emit_assignments() {
    for (std::size_t i = 0; i < request_.updates.size(); ++i) {
      VariableState& state = request_.updates[i].target.state();
      const Location to = buffers_.variable(state), from = buffers_.locate(roots_[request_.outputs.size() + i]);
      if (!(from == to))
        emit_copy(from, to, static_cast<std::int64_t>(state.value().bytes()), "assign " + state.name());
    }
  }

  void finish() {
    for (std::size_t i = 0; i < request_.outputs.size(); ++i)
      plan_.outputs_.push_back({slot(buffers_.locate(roots_[i])), local_.meta(roots_[i])});
    const auto in_place = find_in_place_gathers(plan_.steps_, plan_.fused_, local_, buffers_);
    for (const InPlaceGather& gather : in_place) buffers_.lend(buffers_.locate(gather.value).buffer);
    plan_.arena_bytes_ = buffers_.place();
    plan_.shared_bytes_ = buffers_.shared_bytes();
    plan_.lent_bytes_ = buffers_.lent_bytes();
    for (const InPlaceGather& gather : in_place) read_in_place(gather);
    plan_.pointers_.resize(slots_.size() + 1, nullptr);
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      const Buffer& buffer = buffers_[slots_[s].buffer];
      const auto offset = static_cast<std::size_t>(slots_[s].offset);
      if (buffer.kind == Buffer::kArena) plan_.arena_slots_.push_back({s, buffer.life.offset + offset});
      else if (buffer.kind == Buffer::kShared) plan_.shared_slots_.push_back({s, buffer.life.offset + offset});
      else if (buffer.kind == Buffer::kFeed) plan_.feed_slots_.push_back({s, buffer.feed, buffer.feed_offset + offset});
      else plan_.pointers_[s] = static_cast<std::byte*>(buffer.address) + offset;
    }
    for (std::size_t i = 0; i < plan_.steps_.size(); ++i) {
      Step& step = plan_.steps_[i];
      step.args.in = plan_.pointers_.data() + first_slot_[i].first;
      step.args.out = plan_.pointers_.data() + first_slot_[i].second;
      step.args.in_meta = step.in_meta;
      step.args.out_meta = step.out_meta;
      step.args.speaks = request_.distributor == nullptr || request_.distributor->rank() == 0;
      if (step.kind != Step::kStart)  // the wire writes when the ranks have met
        step.writes_shared_from =
            buffers_.first_shared_byte(std::span(slots_).subspan(first_slot_[i].second, step.out_meta.size()));
    }
    plan_.tickets_.resize(plan_.transfers_.size());
    for (const Expr& root : roots_) plan_.keep_.push_back(root);
    collect_variables();
    plan_.find_first_write();
  }

  void read_in_place(const InPlaceGather& gather) {
    Step& start = plan_.steps_[gather.start];
    start.label = "all_gather: rows are read where they are";
    plan_.transfers_[static_cast<std::size_t>(start.index)].in_place = true;
    plan_.memory_of_.resize(gather.begin.size() - 1);
    const Location at = buffers_.locate(gather.value);
    read_by_rank(gather, buffers_[at.buffer].life.offset + static_cast<std::size_t>(at.offset), plan_.steps_,
                 plan_.rank_parts_);
  }

  // In the order of the graph, which is the same on every rank.
  void collect_variables() {
    std::set<const VariableState*> seen;
    auto add = [&](const std::shared_ptr<VariableState>& state) {
      if (seen.insert(state.get()).second) plan_.variables_.push_back(state);
    };
    for (const auto& node : nodes_under(roots_))
      if (node->op == &def_of<VariableLeaf>()) add(static_cast<const VariableLeaf::Attrs*>(node->attrs.get())->state);
    for (const Update& u : request_.updates) add(u.target.expr().attrs<VariableLeaf::Attrs>().state);
    for (const LoopStep& loop : plan_.loops_)
      for (const auto& state : loop.body.variables()) add(state);
  }

  const LowerRequest& request_;
  const LocalView local_;
  const std::vector<Expr> roots_;
  Plan plan_;
  const std::vector<Task> tasks_;
  Buffers buffers_;
  const TransferNames names_;
  std::vector<Location> slots_;
  std::vector<std::pair<std::size_t, std::size_t>> first_slot_;  // of a step: operands, outputs
  std::unordered_map<int, int> transfer_index_;
  std::unordered_map<Expr, std::string, ExprHash> assigned_;  // a new value -> its variable
};

Plan lower(const LowerRequest& request) { return Lowering(request).run(); }

}  // namespace syncline
