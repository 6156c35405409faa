#include <algorithm>

#include "runtime/passes/passes.h"
#include "runtime/schedule/space.h"
#include "runtime/schedule/uses.h"

namespace syncline {
namespace {

// Joins consecutive fused tasks and reductions into one program.
class Joiner {
 public:
  // The caller may move the schedule's tasks afterwards.
  Joiner(const Schedule& schedule, const Uses& uses)
      : fuse_(schedule.request.fuse), local_(schedule.local()), uses_(uses) {
    for (const Task& task : schedule.tasks) nodes_.push_back(task.nodes.back());
    for (std::size_t i = 0; i < schedule.request.updates.size(); ++i)
      new_values_.insert(local_.resolve(schedule.new_value(i)).base);
  }

  void add(Task task, std::vector<Task>& to) const {
    if (!to.empty() && can_join(to.back(), task)) join(to.back(), std::move(task));
    else to.push_back(std::move(task));
  }

 private:
  // True if both tasks compute over the same elements and the second reads a full operand or result of the first: one
  // pass then replaces two. The second must read results of the first element by element.
  bool can_join(const Task& first, const Task& second) const {
    if (!may_join(first) || !may_join(second) || !fuse_ || first.guards != second.guards) return false;
    const Space space = space_of_program(first, local_);
    if (space != space_of_program(second, local_)) return false;
    const bool reduces = first.kind != Task::kFused || second.kind != Task::kFused;
    if (reduces && !may_reduce_together(first, second)) return false;
    bool shared = false;
    for (const Expr& read : second.reads) {
      const bool whole = space_of(read, local_) == space;
      shared = shared || (whole && (contains(first.reads, read) || contains(first.writes, read)));
      const Expr base = local_.resolve(read).base;
      if (contains(first.writes, base) && (!whole || !(base == read) || base.op().block == nullptr)) return false;
    }
    for (const Expr& view : second.strided_views)
      if (contains(first.writes, local_.resolve(view.input(0)).base)) return false;
    return shared && fit_one_program(first, second, local_);
  }

  bool may_join(const Task& task) const { return task.has_program() || can_take_program(task, local_); }

  // An update of variables stays apart: beside other results, the task could not move behind those that may fail.
  bool may_reduce_together(const Task& first, const Task& second) const {
    const bool computes = first.nodes[0].op().block != nullptr || second.nodes[0].op().block != nullptr;
    return computes && !reads_gathered(first, local_) && !reads_gathered(second, local_) &&
           updates_only(first) == updates_only(second) && reduce_alike(first.reductions(), second.reductions());
  }

  bool updates_only(const Task& task) const {
    return std::all_of(task.writes.begin(), task.writes.end(), [&](const Expr& e) { return new_values_.contains(e); });
  }

  static bool reduce_alike(std::span<const Expr> a, std::span<const Expr> b) {
    if (a.empty() || b.empty()) return true;
    const OpDef& op = a[0].op();
    return &op == &b[0].op() && a[0].dtype() == b[0].dtype() && a.size() + b.size() <= kernels::kMostReduced &&
           op.equal(a[0].node().attrs.get(), b[0].node().attrs.get());
  }

  void join(Task& first, Task second) const {
    const bool reduces = first.kind != Task::kFused || second.kind != Task::kFused;
    first.kind = reduces ? Task::kReduce : Task::kFused;
    first.nodes.insert(first.nodes.end(), second.nodes.begin(), second.nodes.end());
    first.may_throw = first.may_throw || second.may_throw;
    for (const Expr& read : second.reads)
      if (!contains(first.writes, read)) add_once(read, first.reads);
    for (const Expr& view : second.strided_views) add_once(view, first.strided_views);
    // Drop outputs that are read only inside.
    std::erase_if(first.writes, [&](const Expr& value) { return is_read_inside_only(value, first); });
    first.writes.insert(first.writes.end(), second.writes.begin(), second.writes.end());
    for (std::vector<Expr>* values : {&first.nodes, &first.writes})
      std::stable_partition(values->begin(), values->end(), [](const Expr& e) { return e.op().block != nullptr; });
  }

  bool is_read_inside_only(const Expr& value, const Task& program) const {
    const Use& use = uses_.of(value);
    return !use.root && !use.readers.empty() && std::all_of(use.readers.begin(), use.readers.end(), [&](int reader) {
      return contains(program.nodes, nodes_[static_cast<std::size_t>(reader)]);
    });
  }

  const bool fuse_;
  const LocalView local_;
  const Uses& uses_;
  std::vector<Expr> nodes_;  // the last node of each task
  ValueSet new_values_;      // of variables
};

// Moves each unguarded gather directly behind the task that writes its operand, so that the transfer starts early.
void start_gathers_early(std::vector<Task>& tasks, const LocalView& local) {
  for (auto task = tasks.begin(); task != tasks.end(); ++task) {
    if (task->kind != Task::kAllGather || !task->guards.empty()) continue;
    const Expr part = local.resolve(task->reads[0]).base;
    const auto writer = std::find_if(std::make_reverse_iterator(task), tasks.rend(),
                                     [&](const Task& before) { return contains(before.writes, part); });
    std::rotate(writer.base(), task, std::next(task));
  }
}

// A counter's or a running mean's new value: no task reads it, and its operands take little memory until the end. These
// tasks run behind all others that need no delayed transfer, so a step that is interrupted earlier changes no variable.
bool is_small_end(const Task& task, const Uses& uses) {
  constexpr std::int64_t kSmall = 64 << 10;  // bytes
  if (task.kind != Task::kFused) return false;
  std::int64_t bytes = 0;
  for (const Expr& read : task.reads) bytes += bytes_over_all_ranks(read);
  const auto is_read = [&](const Expr& value) {
    return !uses.of(value).readers.empty() || std::any_of(task.nodes.begin(), task.nodes.end(), [&](const Expr& node) {
      return contains(node.node().inputs, value);
    });
  };
  return bytes <= kSmall && std::none_of(task.writes.begin(), task.writes.end(), is_read);
}

}  // namespace

Schedule order(Schedule schedule) {
  const Uses uses(schedule);
  const Joiner joiner(schedule, uses);
  std::vector<Task> early, sums, late;
  early.reserve(schedule.tasks.size());
  for (Task& task : schedule.tasks) {
    if (task.bucketed) sums.push_back(std::move(task));
    else joiner.add(std::move(task), task.late ? late : early);
  }
  start_gathers_early(early, schedule.local());
  std::vector<Task> small_ends;
  schedule.tasks.clear();
  for (Task& task : early) (is_small_end(task, uses) ? small_ends : schedule.tasks).push_back(std::move(task));
  for (std::vector<Task>* part : {&small_ends, &sums, &late})
    std::move(part->begin(), part->end(), std::back_inserter(schedule.tasks));
  return schedule;
}

}  // namespace syncline
