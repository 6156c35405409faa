#include "runtime/schedule/commit.h"

#include <algorithm>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "ops/control/body.h"
#include "ops/control/loop.h"
#include "ops/leaf.h"
#include "runtime/collectives.h"

namespace syncline {
namespace {

class Commit {
 public:
  Commit(const std::vector<Task>& tasks, std::span<const Expr> new_values, const LocalView& local)
      : last_(tasks.size(), false) {
    for (const Expr& value : new_values) new_values_.insert(local.resolve(value).base);
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      for (const Expr& read : tasks[t].reads) readers_[local.resolve(read).base].push_back(t);
      for (const Guard& guard : tasks[t].guards) readers_[local.resolve(guard.condition).base].push_back(t);
    }
    for (std::size_t t = tasks.size(); t-- > 0;) last_[t] = is_last(tasks[t]);
  }

  const std::vector<bool>& last() const { return last_; }

 private:
  // A task whose results only variables want. Under a condition, what computes the value that may become a variable's
  // may write it there (runtime/schedule/buffers.cc).
  bool is_last(const Task& task) const {
    if ((task.kind != Task::kFused && task.kind != Task::kKernel) || task.may_refuse) return false;
    const bool conditional = task.kind == Task::kFused && !task.guards.empty();
    return !task.writes.empty() && std::all_of(task.writes.begin(), task.writes.end(), [&](const Expr& value) {
      const auto readers = readers_.find(value);
      if (readers == readers_.end()) return new_values_.contains(value);
      const bool for_last = std::all_of(readers->second.begin(), readers->second.end(),
                                        [&](std::size_t reader) { return last_[reader]; });
      return for_last && (conditional || new_values_.contains(value));
    });
  }

  std::unordered_set<Expr, ExprHash> new_values_;
  std::unordered_map<Expr, std::vector<std::size_t>, ExprHash> readers_;  // tasks
  std::vector<bool> last_;
};

bool may_refuse(const Expr& value) {
  if (value.op().may_refuse == nullptr) return false;
  std::vector<Meta> in;
  for (const Expr& input : value.node().inputs) in.push_back(input.meta());
  return value.op().may_refuse(value.node().attrs.get(), in);
}

// Whether a rank may refuse what the others take: it has rows of its own, or it prints alone.
bool may_refuse_alone(const Task& task, const LocalView& local) {
  const auto speaks = [](const Expr& value) {
    return value.op().effect || (value.is<Loop>() && has_effect(value.attrs<Loop::Attrs>().body->roots()));
  };
  const auto has_own = [&](const Expr& read) { return !local.placement(read).is_replicated(); };
  return task.may_refuse && (std::any_of(task.nodes.begin(), task.nodes.end(), speaks) ||
                             std::any_of(task.reads.begin(), task.reads.end(), has_own));
}

// Whether a task that a rank may refuse alone has no transfer behind it that starts whenever the task runs.
bool must_meet(const std::vector<Task>& tasks, const LocalView& local) {
  std::vector<const Guards*> started;  // the guards of transfers behind
  for (auto task = tasks.rbegin(); task != tasks.rend(); ++task) {
    const auto runs_too = [&](const Guards* guards) {
      return std::all_of(guards->begin(), guards->end(), [&](const Guard& guard) {
        return std::find(task->guards.begin(), task->guards.end(), guard) != task->guards.end();
      });
    };
    if (may_refuse_alone(*task, local) && std::none_of(started.begin(), started.end(), runs_too)) return true;
    if (task->kind == Task::kAllReduce || task->kind == Task::kAllGather) started.push_back(&task->guards);
  }
  return false;
}

}  // namespace

std::vector<Expr> roots_of(const LowerRequest& request, const LocalView& local) {
  std::set<const VariableState*> updated;
  for (const Update& u : request.updates) updated.insert(&u.target.state());
  auto own = [&](const Expr& root) {
    const Expr base = local.resolve(root).base;
    const bool stale = base.is<VariableLeaf>() && updated.contains(base.attrs<VariableLeaf::Attrs>().state.get());
    return stale ? apply<Copy>({root}) : root;
  };
  std::vector<Expr> roots;
  for (const Expr& output : request.outputs) roots.push_back(own(output));
  for (const Update& u : request.updates) roots.push_back(own(u.value));
  return roots;
}

std::vector<Task> commit_last(std::vector<Task> tasks, const std::vector<Expr>& roots, const LowerRequest& request,
                              const LocalView& local) {
  for (Task& task : tasks)
    task.may_refuse = task.may_refuse || std::any_of(task.nodes.begin(), task.nodes.end(), may_refuse);
  const std::span new_values = std::span(roots).subspan(request.outputs.size());
  if (new_values.empty() || std::none_of(tasks.begin(), tasks.end(), may_fail)) return tasks;
  const bool meeting = request.distributor != nullptr && must_meet(tasks, local);
  const std::vector<bool> last = Commit(tasks, new_values, local).last();
  std::vector<Task> ordered;
  for (const bool turn : {false, true}) {
    if (turn && meeting) ordered.push_back({.kind = Task::kMeeting, .nodes = {}, .reads = {}, .writes = {}});
    for (std::size_t t = 0; t < tasks.size(); ++t)
      if (last[t] == turn) ordered.push_back(std::move(tasks[t]));
  }
  return ordered;
}

}  // namespace syncline
