#include <algorithm>

#include "ops/control/branch.h"
#include "runtime/passes/passes.h"
#include "runtime/placement/collectives.h"
#include "runtime/schedule/uses.h"

namespace syncline {
namespace {

// Bytes of sums that travel together: about what a link carries during its latency.
constexpr std::int64_t kSmallSums = 64 << 10;

bool is_sum(const Task& task) {
  return task.kind == Task::kAllReduce && task.nodes[0].attrs<AllReduce::Attrs>().from == Placement::kPartial;
}

// Sets `bucketed` and `late`. A sum over ranks may wait in a bucket if no transfer and no condition depends on it
// (transfers may be guarded by the condition). A gather may wait if no all-reduce and no condition depends on it. Tasks
// that depend on such transfers are late.
void mark_late(std::vector<Task>& tasks, const Uses& uses) {
  const std::size_t count = tasks.size();
  std::vector<bool> leads_to_wire(count), leads_to_sum(count), can_wait(count);
  for (std::size_t t = count; t-- > 0;) {
    const Task& task = tasks[t];
    const bool condition = task.nodes[0].is<Condition>();
    for (const Expr& read : task.reads) {
      const int writer = uses.of(read).writer;
      if (writer == kNoTask) continue;
      const auto w = static_cast<std::size_t>(writer);
      if (task.starts_transfer() || condition || leads_to_wire[t]) leads_to_wire[w] = true;
      if (task.kind == Task::kAllReduce || condition || leads_to_sum[t]) leads_to_sum[w] = true;
    }
  }
  for (std::size_t t = 0; t < count; ++t) {
    Task& task = tasks[t];
    task.bucketed = is_sum(task) && !leads_to_wire[t];
    can_wait[t] = task.bucketed || (task.kind == Task::kAllGather && !leads_to_sum[t]);
    task.late = std::any_of(task.reads.begin(), task.reads.end(), [&](const Expr& read) {
      const int writer = uses.of(read).writer;
      return writer != kNoTask &&
             (can_wait[static_cast<std::size_t>(writer)] || tasks[static_cast<std::size_t>(writer)].late);
    });
  }
}

// Sums that become one transfer. All have an equal level: how many such transfers come one after the other before it.
struct Group {
  int level = 0;
  std::vector<std::size_t> sums;  // ascending
  std::int64_t bytes = 0;
};

class Coalescer {
 public:
  Coalescer(std::vector<Task> tasks, const Uses& uses, const LocalView& local)
      : tasks_(std::move(tasks)), uses_(uses), local_(local), level_(tasks_.size(), 0), moved_(tasks_.size(), false) {
    for (const Task& task : tasks_)
      is_small_.push_back(is_sum(task) && !task.bucketed && !task.late && local_.bytes(task.nodes[0]) <= kSmallSums);
  }

  std::vector<Task> run() {
    find_groups();
    // A group depends on groups of lower levels only.
    std::stable_sort(groups_.begin(), groups_.end(), [](const Group& a, const Group& b) { return a.level < b.level; });
    for (const Group& group : groups_) {
      move_operands(group);
      move_sums(group);
      // While the sums are under way, tasks run that stood before them.
      for (std::size_t t = 0; t < group.sums.front(); ++t)
        if (level_[t] <= group.level && !is_small_[t]) move(t);
    }
    for (std::size_t t = 0; t < tasks_.size(); ++t) move(t);
    return std::move(ordered_);
  }

 private:
  // Calls f with the writers of a task's operands and guard conditions.
  template <class F>
  void for_writers(std::size_t t, F f) const {
    const auto visit = [&](const Expr& value) {
      if (const int writer = uses_.of(value).writer; writer != kNoTask) f(static_cast<std::size_t>(writer));
    };
    for (const Expr& read : tasks_[t].reads) visit(read);
    for (const Guard& guard : tasks_[t].guards) visit(guard.condition);
  }

  void find_groups() {
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      for_writers(t, [&](std::size_t w) { level_[t] = std::max(level_[t], level_[w] + (is_small_[w] ? 1 : 0)); });
      if (is_small_[t]) add_to_group(t);
    }
  }

  void add_to_group(std::size_t t) {
    const std::int64_t bytes = local_.bytes(tasks_[t].nodes[0]);
    auto group = std::find_if(groups_.rbegin(), groups_.rend(), [&](const Group& g) {
      const Task& first = tasks_[g.sums.front()];
      return g.level == level_[t] && first.guards == tasks_[t].guards && g.bytes + bytes <= kSmallSums &&
             first.nodes[0].dtype() == tasks_[t].nodes[0].dtype();
    });
    if (group == groups_.rend()) {
      groups_.push_back({.level = level_[t], .sums = {}});
      group = groups_.rbegin();
    }
    group->sums.push_back(t);
    group->bytes += bytes;
  }

  void move(std::size_t t) {
    if (moved_[t]) return;
    moved_[t] = true;
    ordered_.push_back(std::move(tasks_[t]));
  }

  void move_operands(const Group& group) {
    std::vector<bool> needed(group.sums.back() + 1, false);
    for (const std::size_t sum : group.sums) needed[sum] = true;
    for (std::size_t t = needed.size(); t-- > 0;)
      if (needed[t]) for_writers(t, [&](std::size_t w) { needed[w] = needed[w] || !moved_[w]; });
    for (const std::size_t sum : group.sums) needed[sum] = false;
    add_reductions(group, needed);
    for (std::size_t t = 0; t < needed.size(); ++t)
      if (needed[t]) move(t);
  }

  // Adds the reductions of values that a needed program or reduction reads or writes: one pass can compute both.
  void add_reductions(const Group& group, std::vector<bool>& needed) const {
    const auto reduces = [&](std::size_t t) {
      return !moved_[t] && tasks_[t].nodes.back().op().run_program != nullptr;
    };
    ValueSet values;
    for (std::size_t t = 0; t < needed.size(); ++t) {
      if (!needed[t] || !(reduces(t) || tasks_[t].has_program())) continue;
      for (const std::vector<Expr>* of : {&tasks_[t].reads, &tasks_[t].writes}) values.insert(of->begin(), of->end());
    }
    for (std::size_t t = 0; t < group.sums.front(); ++t) {
      if (needed[t] || !reduces(t) || level_[t] > group.level) continue;
      bool ready = std::ranges::any_of(tasks_[t].reads, [&](const Expr& read) { return values.contains(read); });
      for_writers(t, [&](std::size_t w) { ready = ready && (needed[w] || moved_[w]); });
      needed[t] = ready;
    }
  }

  void move_sums(const Group& group) {
    Task& all = tasks_[group.sums.front()];
    for (std::size_t i = 1; i < group.sums.size(); ++i) {
      Task& sum = tasks_[group.sums[i]];
      moved_[group.sums[i]] = true;
      all.nodes.push_back(sum.nodes[0]);
      all.reads.push_back(sum.reads[0]);
      all.writes.push_back(sum.writes[0]);
    }
    move(group.sums.front());
  }

  std::vector<Task> tasks_;
  const Uses& uses_;
  const LocalView local_;
  std::vector<bool> is_small_;  // a small sum that is needed at once
  std::vector<int> level_;
  std::vector<bool> moved_;
  std::vector<Group> groups_;
  std::vector<Task> ordered_;
};

}  // namespace

Schedule coalesce(Schedule schedule) {
  if (schedule.transfers == 0) return schedule;
  const Uses uses(schedule);
  mark_late(schedule.tasks, uses);
  const LocalView local = schedule.local();
  schedule.tasks = Coalescer(std::move(schedule.tasks), uses, local).run();
  return schedule;
}

}  // namespace syncline
