#include <algorithm>
#include <span>

#include "ops/control/body.h"
#include "ops/control/loop.h"
#include "runtime/passes/passes.h"
#include "runtime/schedule/uses.h"

// A step that fails, in a transfer or in an op that rejects a value (OpDef::may_throw), changes no variable. The
// surviving ranks then hold the state after the last completed step and can save it. The rows of shared variables are
// written to other memory, before a barrier: when a rank has passed it, all ranks have written theirs.
namespace syncline {
namespace {

bool is_shared(const Update& update) { return update.target.state().shared() != nullptr; }

// For each task, whether to move it behind all tasks that may fail: only new values of variables depend on it. Guarded
// fused tasks count too, because they may compute one side of a choice in the variable (passes/assign_memory.cc). A
// task that reads the old value of a shared variable stays: behind the barrier, a faster rank may write there in its
// next step.
std::vector<bool> last_tasks(const Schedule& schedule) {
  const Uses uses(schedule);
  const LocalView local = schedule.local();
  ValueSet new_values, old_shared;
  for (std::size_t i = 0; i < schedule.request.updates.size(); ++i) {
    const Update& update = schedule.request.updates[i];
    if (is_shared(update)) old_shared.insert(update.target.expr());
    else new_values.insert(local.resolve(schedule.new_value(i)).base);
  }
  const auto reads_old = [&](const Expr& read) { return old_shared.contains(local.resolve(read).base); };
  std::vector<bool> last(schedule.tasks.size());
  for (std::size_t t = schedule.tasks.size(); t-- > 0;) {
    const Task& task = schedule.tasks[t];
    if (task.kind > Task::kReduce || task.may_throw || task.writes.empty()) continue;
    if (std::ranges::any_of(task.reads, reads_old)) continue;
    const bool conditional = task.has_program() && !task.guards.empty();
    last[t] = std::all_of(task.writes.begin(), task.writes.end(), [&](const Expr& value) {
      const std::span<const int> readers = uses.of(value).readers;
      if (readers.empty()) return new_values.contains(value);
      return (conditional || new_values.contains(value)) &&
             std::all_of(readers.begin(), readers.end(), [&](int r) { return last[static_cast<std::size_t>(r)]; });
    });
  }
  return last;
}

// True if one rank may reject a value that the others accept, because it has its own rows or prints alone.
bool may_throw_alone(const Task& task, const LocalView& local) {
  const auto is_primarys = [](const Expr& value) {
    return value.op().effect || (value.is<Loop>() && has_effect(value.attrs<Loop::Attrs>().body->roots()));
  };
  const auto has_own = [&](const Expr& read) { return !local.placement(read).is_replicated(); };
  return task.may_throw && (std::any_of(task.nodes.begin(), task.nodes.end(), is_primarys) ||
                            std::any_of(task.reads.begin(), task.reads.end(), has_own));
}

// A rank that rejects a value alone never starts later transfers, so the other ranks fail in these. True if some task
// may reject a value on one rank alone, and no later transfer is certain to run in the same step.
bool needs_barrier(const Schedule& schedule) {
  const LocalView local = schedule.local();
  std::vector<const Guards*> started;  // the guards of later transfers
  for (auto task = schedule.tasks.rbegin(); task != schedule.tasks.rend(); ++task) {
    const auto runs_too = [&](const Guards* guards) {
      return std::all_of(guards->begin(), guards->end(), [&](const Guard& guard) {
        return std::find(task->guards.begin(), task->guards.end(), guard) != task->guards.end();
      });
    };
    if (may_throw_alone(*task, local) && std::none_of(started.begin(), started.end(), runs_too)) return true;
    if (task->starts_transfer()) started.push_back(&task->guards);
  }
  return false;
}

}  // namespace

Schedule commit(Schedule schedule) {
  const auto may_fail = [](const Task& task) { return task.may_fail(); };
  const bool writes_shared = std::ranges::any_of(schedule.request.updates, is_shared);
  if (schedule.request.updates.empty() || (!writes_shared && std::ranges::none_of(schedule.tasks, may_fail)))
    return schedule;
  const bool barrier = writes_shared || (schedule.request.strategy != nullptr && needs_barrier(schedule));
  const std::vector<bool> last = last_tasks(schedule);
  std::vector<Task> tasks;
  for (const bool pass_of_last : {false, true}) {
    if (pass_of_last && barrier) tasks.push_back({.kind = Task::kBarrier});
    for (std::size_t t = 0; t < schedule.tasks.size(); ++t)
      if (last[t] == pass_of_last) tasks.push_back(std::move(schedule.tasks[t]));
  }
  schedule.tasks = std::move(tasks);
  return schedule;
}

}  // namespace syncline
