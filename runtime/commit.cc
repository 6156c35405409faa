#include "runtime/commit.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace syncline {
namespace {

class Commit {
 public:
  Commit(const std::vector<Task>& tasks, const std::vector<Expr>& new_values, const LocalView& local)
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
  // may write it there (runtime/buffers.cc).
  bool is_last(const Task& task) const {
    if (task.kind != Task::kFused && task.kind != Task::kKernel) return false;
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

}  // namespace

std::vector<Task> commit_last(std::vector<Task> tasks, const std::vector<Expr>& new_values, const LocalView& local) {
  if (std::none_of(tasks.begin(), tasks.end(), meets_ranks)) return tasks;
  const std::vector<bool> last = Commit(tasks, new_values, local).last();
  std::vector<Task> ordered;
  for (const bool turn : {false, true})
    for (std::size_t t = 0; t < tasks.size(); ++t)
      if (last[t] == turn) ordered.push_back(std::move(tasks[t]));
  return ordered;
}

}  // namespace syncline
