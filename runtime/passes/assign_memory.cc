#include <algorithm>
#include <unordered_map>

#include "base/alignment.h"
#include "ops/control/branch.h"
#include "ops/graph/fill.h"
#include "ops/graph/leaf.h"
#include "runtime/passes/passes.h"
#include "runtime/placement/collectives.h"
#include "runtime/plan/scratch_guard.h"
#include "runtime/schedule/uses.h"

namespace syncline {
namespace {

constexpr std::int64_t kSharedFrom = 64 << 10;  // bytes; comm copies smaller transfers in any case

// Each transfer has its own region. A variable's new value is computed in the variable if no later task reads the old
// value. An output may reuse the buffer of an operand with no later reader.
class Assigner {
 public:
  explicit Assigner(const Schedule& schedule)
      : request_(schedule.request), schedule_(schedule), local_(schedule.local()), uses_(schedule) {
    for (int t = 0; t < count(); ++t)
      if (task(t).may_fail()) last_failure_ = t;
    for (std::size_t i = 0; i < request_.updates.size(); ++i)
      if (request_.updates[i].target.state().shared() != nullptr) new_shared_.insert(schedule_.new_value(i));
    find_ends();
  }

  Memory run() {
    choose_transfer_memory();
    choose_variable_memory();
    choose_output_memory();
    for (int t = 0; t < count(); ++t) assign_outputs(t);
    add_leaves();
    return std::move(memory_);
  }

 private:
  int count() const { return static_cast<int>(schedule_.tasks.size()); }
  const Task& task(int t) const { return schedule_.tasks[static_cast<std::size_t>(t)]; }
  // When task t begins to write: an epilogue writes while the kernel before it runs.
  int begin(int t) const { return task(t).epilogue ? t - 1 : t; }

  // The last task that needs each value's memory. A transfer reads and writes its memory until the wait.
  void find_ends() {
    std::unordered_map<int, const Task*> starts;
    for (int t = 0; t < count(); ++t) {
      for (const Expr& value : task(t).writes) last_[value] = uses_.of(value).last(count());
      if (task(t).starts_transfer()) starts[task(t).transfer] = &task(t);
      if (task(t).kind != Task::kWait) continue;
      for (const Expr& node : starts.at(task(t).transfer)->nodes)
        for (const Expr& value : {node, local_.resolve(node.input(0)).base})
          if (int* end = last_.find(value)) *end = std::max(*end, t);
    }
  }

  void choose_transfer_memory() {
    for (int t = 0; t < count(); ++t) {
      if (!task(t).starts_transfer() || new_shared_.contains(task(t).nodes[0])) continue;
      const int region = task(t).kind == Task::kAllReduce       ? place_sums(task(t), t)
                         : task(t).kind == Task::kReduceScatter ? place_scattered(task(t), t)
                                                                : place_gathered(task(t), t);
      if (request_.shared_buckets && may_be_shared(task(t))) memory_[region].kind = Buffer::kShared;
    }
  }

  // Shared memory may be scarce: it holds no gathered outputs, which may have all rows of a test set.
  bool may_be_shared(const Task& task) const {
    if (task.kind != Task::kAllGather) return task.bucketed;
    const bool is_root = std::any_of(schedule_.roots.begin(), schedule_.roots.end(), [&](const Expr& root) {
      const Expr& base = local_.resolve(root).base;
      return base == task.nodes[0] || (base.is<Interleave>() && base.input(0) == task.nodes[0]);
    });
    return !is_root && local_.bytes(task.nodes[0]) >= kSharedFrom;
  }

  // One region for all elements of an all-reduce.
  int place_sums(const Task& task, int t) {
    int first = t, last = t;
    std::int64_t bytes = 0;
    const int region = memory_.add_arena(0, t, t);
    for (const Expr& node : task.nodes) {
      last = std::max(last, last_.at(node));
      memory_.put(node, {region, bytes});
      const Expr& base = local_.resolve(node.input(0)).base;
      if (local_.bytes(base) == local_.bytes(node) && uses_.of(base).readers.size() == 1)
        first = place_operand(base, {region, bytes}, first);
      bytes += static_cast<std::int64_t>(aligned(static_cast<std::size_t>(local_.bytes(node))));
    }
    memory_[region].life = {static_cast<std::size_t>(bytes), first, last, 0};
    return region;
  }

  // One region for the terms. This rank's rows of the sum take the place of its rows of the terms.
  int place_scattered(const Task& task, int t) {
    const Expr& node = task.nodes[0];
    const Expr& terms = node.input(0);
    const int region = memory_.add_arena(local_.bytes(terms), t, last_.at(node));
    memory_.put(node, {region, local_.bytes_before(node)});
    const Expr& base = local_.resolve(terms).base;
    if (local_.bytes(base) == local_.bytes(terms) && uses_.of(base).readers.size() == 1)
      memory_[region].life.first = place_operand(base, {region, 0}, t);
    return region;
  }

  // One region for the parts of all ranks, in rank order.
  int place_gathered(const Task& task, int t) {
    const Expr& node = task.nodes[0];
    const Expr& part = node.input(0);
    const int region = memory_.add_arena(local_.bytes(node), t, last_.at(node));
    memory_.put(node, {region, 0});
    const Expr& base = local_.resolve(part).base;
    Lifetime& life = memory_[region].life;
    if (local_.bytes(base) == local_.bytes(part))
      life.first = place_operand(base, {region, local_.bytes_before(part)}, t);
    if (life.first < t) life.last = std::max(life.last, last_.at(base));  // a gather keeps the part
    return region;
  }

  // Computes a transfer's operand directly in its region; roots and leaves are copied there. Returns the first task
  // that needs the region, `first` so far.
  int place_operand(const Expr& value, const Location& at, int first) {
    const Use& use = uses_.of(value);
    if (use.writer == kNoTask || use.root || !writes_anywhere(task(use.writer), value) || memory_.has(value))
      return first;
    memory_.put(value, at);
    return std::min(first, begin(use.writer));
  }

  // True if the task can write the value anywhere. Excludes a loop's states and stacks, its working memory.
  static bool writes_anywhere(const Task& task, const Expr& value) {
    return task.kind <= Task::kReduce ||
           std::find(task.products.begin(), task.products.end(), value) != task.products.end();
  }

  void choose_variable_memory() {
    for (std::size_t i = 0; i < request_.updates.size(); ++i) {
      const Variable& target = request_.updates[i].target;
      if (target.state().shared() != nullptr) {
        place_in_shared(target, schedule_.new_value(i));
        continue;
      }
      const auto place = local_.resolve(schedule_.new_value(i));
      const int writer = uses_.of(place.base).writer;
      if (writer == kNoTask || place.offset != 0 || memory_.has(place.base)) continue;
      if (!may_write_in_place(target, place.base, writer)) continue;
      memory_.put(place.base, {memory_.of_variable(target.state()), 0});
      compute_new_side_in_place(target, place.base, writer);
    }
  }

  // The rows that this rank computes, and those of all ranks if the nodes exchange them.
  void place_in_shared(const Variable& target, const Expr& value) {
    const Expr& rows = value.is<AllGather>() ? value.input(0) : value;
    const OutputSlice own = local_.slice(rows);
    const std::int64_t row =
        own.size == 0 ? 0 : target.shape().size() * static_cast<std::int64_t>(size_of(target.dtype())) / own.size;
    const int next = memory_.next_of_variable(target.state());
    memory_.put(rows, {next, own.begin * row - target.state().shared()->before});
    if (!(rows == value)) memory_.put(value, {next, 0});
  }

  bool may_write_in_place(const Variable& variable, const Expr& value, int t) const {
    const std::span<const int> readers = uses_.of(variable.expr()).readers;
    return t > last_failure_ && (readers.empty() || readers.back() <= t) &&
           overwrites_what_it_has_read(variable, value, t);
  }

  // For a variable that changes only under a condition, by the choice in task t: computes the new side in the variable
  // if no task between reads the old value. Both sides of the choice then lie in the variable.
  void compute_new_side_in_place(const Variable& target, const Expr& choice, int t) {
    if (!choice.is<Choose>() || !(choice.input(0) == target.expr())) return;
    const auto side = local_.resolve(choice.input(1));
    const Use& use = uses_.of(side.base);
    if (use.writer == kNoTask || side.offset != 0 || memory_.has(side.base) || use.readers.size() != 1 || use.root ||
        use.writer <= last_failure_)
      return;
    const Guard guard{choice.input(2), false};
    const Guards& guards = task(use.writer).guards;
    if (std::find(guards.begin(), guards.end(), guard) == guards.end()) return;
    for (const int reader : uses_.of(target.expr()).readers)
      if (reader > use.writer && reader < t) return;
    if (overwrites_what_it_has_read(target, side.base, use.writer))
      memory_.put(side.base, {memory_.of_variable(target.state()), 0});
  }

  // True if task t, which computes the value in the variable, reads each old element before overwriting it.
  bool overwrites_what_it_has_read(const Variable& variable, const Expr& value, int t) const {
    const Task& task = this->task(t);
    if (task.kind > Task::kReduce) return false;
    const Expr& leaf = variable.expr();
    if (local_.bytes(value) != local_.bytes(leaf)) return false;
    if (task.epilogue && reads_of(this->task(t - 1), leaf) > 0) return false;
    const int reads = reads_of(task, leaf);
    if (reads == 0) return true;
    if (reads > 1) return false;
    for (const Expr& read : task.reads) {
      if (!(local_.resolve(read).base == leaf)) continue;
      if (task.has_program()) return overwrites_operands(task, value, leaf) && local_.meta(read) == local_.meta(value);
      return task.nodes[0].op().in_place && read == task.reads[0];
    }
    return false;
  }

  // True if a program may write the value over an operand of equal shape. A reduction reads its operands once more.
  bool overwrites_operands(const Task& task, const Expr& value, const Expr& operand) const {
    const std::span<const Expr> reductions = task.reductions();
    return task.has_program() && value.op().block != nullptr &&
           std::none_of(reductions.begin(), reductions.end(),
                        [&](const Expr& e) { return local_.resolve(e.input(0)).base == operand; });
  }

  // How many operands of a task read a value: the value, views and strided views.
  int reads_of(const Task& task, const Expr& base) const {
    return count_reads(task, [&](const Expr& read_base) { return read_base == base; });
  }
  // The same for a buffer, which has several bases where a part is computed within what is gathered from all parts.
  int reads_in(const Task& task, int buffer) const {
    return count_reads(
        task, [&](const Expr& base) { return memory_.has(base) && memory_.locate(base, local_).buffer == buffer; });
  }
  template <class Counts>
  int count_reads(const Task& task, Counts counts) const {
    const auto looks_at = [&](const Expr& read) { return counts(local_.resolve(read).base); };
    const auto cut_from = [&](const Expr& view) { return looks_at(view.input(0)); };
    return static_cast<int>(std::count_if(task.reads.begin(), task.reads.end(), looks_at) +
                            std::count_if(task.strided_views.begin(), task.strided_views.end(), cut_from));
  }

  // Computes outputs in the caller's memory.
  void choose_output_memory() {
    for (std::size_t i = 0; i < request_.in_callers_memory.size(); ++i) {
      if (!request_.in_callers_memory[i]) continue;
      const Expr& root = schedule_.roots[i];
      const auto place = local_.resolve(root);
      const int writer = uses_.of(place.base).writer;
      if (writer == kNoTask || place.offset != 0 || memory_.has(place.base)) continue;
      if (task(writer).kind > Task::kReduce || local_.bytes(place.base) != local_.bytes(root)) continue;
      memory_.put(place.base, {memory_.add({.kind = Buffer::kFeed, .feed = request_.feeds.size() + i}), 0});
    }
  }

  void assign_outputs(int t) {
    for (const Expr& value : task(t).writes) {
      if (memory_.has(value)) continue;
      int buffer = reusable_operand(task(t), value, t);
      if (buffer < 0) buffer = memory_.add_arena(local_.bytes(value), begin(t), last_.at(value));
      memory_[buffer].life.last = std::max(memory_[buffer].life.last, last_.at(value));
      memory_.put(value, {buffer, 0});
    }
  }

  // The buffer of an operand of equal size without later readers, or -1.
  int reusable_operand(const Task& task, const Expr& value, int t) const {
    const bool in_place = task.has_program() || (task.kind == Task::kKernel && task.nodes[0].op().in_place);
    if (!in_place) return -1;
    for (const Expr& read : task.reads) {
      if (task.kind == Task::kKernel && !(read == task.reads[0])) break;
      const auto place = local_.resolve(read);
      if (!memory_.has(place.base) || place.offset != 0) continue;
      if (task.kind == Task::kReduce && !overwrites_operands(task, value, place.base)) continue;
      const Location at = memory_.locate(place.base, local_);
      const Buffer& buffer = memory_[at.buffer];
      if (at.offset != 0 || buffer.kind != Buffer::kArena || buffer.life.last != t || buffer.life.first >= t) continue;
      if (local_.meta(read).shape != local_.meta(value).shape || local_.bytes(read) != local_.bytes(value)) continue;
      if (static_cast<std::int64_t>(buffer.life.bytes) != local_.bytes(value) || reads_in(task, at.buffer) != 1)
        continue;
      if (task.epilogue && reads_in(this->task(t - 1), at.buffer) > 0) continue;
      return at.buffer;
    }
    return -1;
  }

  // Locates the remaining operands and roots: variables, constants and feeds.
  void add_leaves() {
    const auto add = [&](const Expr& value) {
      const Expr& base = local_.resolve(value).base;
      if (!memory_.has(base)) memory_.put(base, {leaf_buffer(base), -bytes_before(base)});
    };
    for (const Task& task : schedule_.tasks) {
      for (const Expr& read : task.reads)
        if (!read.is<Fill>()) add(read);
      for (const Guard& guard : task.guards) add(guard.condition);
    }
    for (const Expr& root : schedule_.roots) add(root);
  }

  // Of a variable that is split between nodes.
  static std::int64_t bytes_before(const Expr& leaf) {
    if (!leaf.is<VariableLeaf>()) return 0;
    const VariableState::Shared* shared = leaf.attrs<VariableLeaf::Attrs>().state->shared();
    return shared == nullptr ? 0 : shared->before;
  }

  int leaf_buffer(const Expr& leaf) {
    if (leaf.is<VariableLeaf>()) return memory_.of_variable(*leaf.attrs<VariableLeaf::Attrs>().state);
    if (leaf.is<Constant>()) return memory_.of_constant(leaf);
    if (!leaf.is<Placeholder>()) fail<InternalError>("plan: ", leaf.op().name, " has no memory");
    const auto feed = std::find(request_.feeds.begin(), request_.feeds.end(), leaf);
    if (feed == request_.feeds.end() && leaf.name().empty())
      fail<ValueError>(
          "function: a tensor of shape ", leaf.shape(), " and ", leaf.dtype(),
          " belongs to one call of a function of map_fn, foldl, foldr, rnn or switch; return it, or what is "
          "computed from it, from that function");
    if (feed == request_.feeds.end())
      fail<ValueError>("function: placeholder '", leaf.name(), "' of shape ", leaf.shape(),
                       " is needed but not among the inputs; add it to inputs");
    Buffer buffer{.kind = Buffer::kFeed, .feed = static_cast<std::size_t>(feed - request_.feeds.begin())};
    if (local_.placement(leaf).is_split() && !request_.local)
      buffer.feed_offset = static_cast<std::size_t>(local_.slice(leaf).begin * leaf.shape().product(1, leaf.ndim())) *
                           size_of(leaf.dtype());
    return memory_.add(buffer);
  }

  const CompileRequest& request_;
  const Schedule& schedule_;
  const LocalView local_;
  const Uses uses_;
  ValueMap<int> last_;
  Memory memory_;
  int last_failure_ = kNoTask;  // the last task that may fail
  ValueSet new_shared_;         // new values of shared variables
};

std::size_t scratch_bytes(const Task& task, const Schedule& schedule) {
  if (task.kind == Task::kLoop) return schedule.bodies[static_cast<std::size_t>(task.body)].scratch_bytes;
  const Expr& value = task.nodes.empty() ? Expr() : task.nodes.back();
  if (task.kind != Task::kKernel && task.kind != Task::kReduce) return 0;
  if (task.part_sum >= 0) return schedule.part_sums[static_cast<std::size_t>(task.part_sum)].scratch_bytes();
  const LocalView local = schedule.local();
  if (!task.parts.empty())
    return std::max<std::size_t>(1, task.reductions().size()) *
           *value.op().parts_scratch(value.node().attrs.get(), local.metas(value.node().inputs), task.parts);
  if (value.op().scratch == nullptr) return 0;
  if (task.kind == Task::kKernel)
    return value.op().scratch(value.node().attrs.get(), local.metas(task.reads), local.metas(task.writes),
                              local.slice(value));
  return task.reductions().size() * value.op().scratch(value.node().attrs.get(), local.metas(value.node().inputs),
                                                       local.metas(std::span(&value, 1)), {});
}

}  // namespace

Schedule assign_memory(Schedule schedule) {
  schedule.memory = Assigner(schedule).run();
  const std::size_t guard_bytes = verifies_plans() ? ScratchGuard::kBytes : 0;
  for (int t = 0; t < static_cast<int>(schedule.tasks.size()); ++t) {
    Task& task = schedule.tasks[static_cast<std::size_t>(t)];
    if (const std::size_t bytes = scratch_bytes(task, schedule); bytes > 0)
      task.scratch = schedule.memory.add_arena(static_cast<std::int64_t>(bytes + guard_bytes), t, t);
  }
  return schedule;
}

Schedule lay_out_memory(Schedule schedule) {
  schedule.memory.place();
  return schedule;
}

}  // namespace syncline
