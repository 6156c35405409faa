#include <algorithm>
#include <map>

#include "ops/control/branch.h"
#include "runtime/passes/passes.h"
#include "runtime/placement/collectives.h"
#include "runtime/schedule/space.h"
#include "runtime/schedule/uses.h"

namespace syncline {
namespace {

// Bytes of sums that travel together: about what a link carries during its latency.
constexpr std::int64_t kSmallSums = 64 << 10;
// A sum joins others only if at most this many tasks over more data than kSmallSums must then run earlier.
constexpr int kMostEarlier = 4;
constexpr std::size_t kMostTasksEarlier = 64;

bool reduces(const Task& task) { return task.kind == Task::kAllReduce || task.kind == Task::kReduceScatter; }

bool is_whole_sum(const Task& task) {
  return task.kind == Task::kAllReduce && task.nodes[0].attrs<AllReduce::Attrs>().from == Placement::kPartial;
}

bool is_sum(const Task& task) { return task.kind == Task::kReduceScatter || is_whole_sum(task); }

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
      if (reduces(task) || condition || leads_to_sum[t]) leads_to_sum[w] = true;
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

// Sums that become one transfer. All have an equal level, so none depends on another one.
struct Group {
  std::vector<std::size_t> sums;
  std::int64_t bytes = 0;
  std::size_t place = 0;  // the transfer starts where this task stood
};

class Coalescer {
 public:
  Coalescer(std::vector<Task> tasks, const Uses& uses)
      : tasks_(std::move(tasks)), uses_(uses), moved_(tasks_.size(), false) {
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      const Task& task = tasks_[t];
      is_small_.push_back(is_whole_sum(task) && !task.bucketed && !task.late &&
                          bytes_over_all_ranks(task.nodes[0]) <= kSmallSums);
      place_.push_back(t);
    }
  }

  std::vector<Task> run() {
    make_groups();
    std::vector<Group> groups;
    for (auto& [level, of_level] : groups_) std::ranges::move(of_level, std::back_inserter(groups));
    std::ranges::stable_sort(groups, {}, &Group::place);
    for (const Group& group : groups) start(group);
    for (std::size_t t = first_; t < tasks_.size(); ++t) move(t);
    return std::move(ordered_);
  }

 private:
  template <class Visit>
  void for_writers(std::size_t t, const Visit& visit) const {
    uses_.for_writers(tasks_[t], [&](int writer) { visit(static_cast<std::size_t>(writer)); });
  }

  // The same on all ranks, which must have equal tasks.
  bool is_large(std::size_t t) const {
    std::int64_t bytes = 0;
    for (const std::vector<Expr>* values : {&tasks_[t].reads, &tasks_[t].writes})
      for (const Expr& value : *values) bytes += bytes_over_all_ranks(value);
    return bytes > kSmallSums;
  }

  // True for a task that must keep its place among others like it.
  bool is_fixed(std::size_t t) const {
    const Task& task = tasks_[t];
    return (task.starts_transfer() && !task.bucketed && !task.late) || task.kind == Task::kLoop ||
           task.nodes[0].op().effect;
  }

  // A level is the number of transfers that have to end one after the other before the task.
  void make_groups() {
    std::vector<int> level(tasks_.size(), 0);
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      for_writers(t, [&](std::size_t w) {
        level[t] = std::max(level[t], level[w] + (tasks_[w].starts_transfer() && !tasks_[w].bucketed ? 1 : 0));
      });
      if (is_small_[t]) add_to_group(t, groups_[level[t]]);
    }
  }

  void add_to_group(std::size_t t, std::vector<Group>& groups) {
    const std::int64_t bytes = bytes_over_all_ranks(tasks_[t].nodes[0]);
    const auto group = std::find_if(groups.rbegin(), groups.rend(), [&](const Group& g) {
      const Task& first = tasks_[g.sums.front()];
      return first.guards == tasks_[t].guards && g.bytes + bytes <= kSmallSums &&
             first.nodes[0].dtype() == tasks_[t].nodes[0].dtype();
    });
    if (group == groups.rend() || !join(t, *group)) return groups.push_back({{t}, bytes, t});
    group->sums.push_back(t);
    group->bytes += bytes;
    for (const std::size_t sum : group->sums) place_[sum] = group->place;
  }

  // Makes it possible that a sum joins a group: the group waits for the sum if no task between them reads the group's
  // results. Otherwise the sum's operands are computed earlier, if these are a few tasks, as in a parallel branch.
  bool join(std::size_t t, Group& group) {
    std::size_t first_reader = tasks_.size();
    for (const std::size_t sum : group.sums)
      for (const int reader : uses_.of(tasks_[sum].writes[0]).readers)
        first_reader = std::min(first_reader, place_[static_cast<std::size_t>(reader)]);
    if (first_reader > t) {
      group.place = t;
      return true;
    }
    std::vector<std::size_t> earlier{t};
    int large = 0;
    for (std::size_t i = 0; i < earlier.size(); ++i) {
      bool may = true;
      for_writers(earlier[i], [&](std::size_t w) {
        if (place_[w] <= group.place || std::ranges::find(earlier, w) != earlier.end()) return;
        large += is_large(w) ? 1 : 0;
        may = may && large <= kMostEarlier && !tasks_[w].starts_transfer() && !is_fixed(w);
        earlier.push_back(w);
      });
      if (!may || earlier.size() > kMostTasksEarlier) return false;
    }
    for (const std::size_t task : earlier) place_[task] = group.place;
    return true;
  }

  void move(std::size_t t) {
    if (moved_[t]) return;
    moved_[t] = true;
    ordered_.push_back(std::move(tasks_[t]));
  }

  // Moves the tasks before the group in their order, then its sums, then those that run while the sums are under way.
  void start(const Group& group) {
    const std::vector<bool> needed = needed_by(group), meanwhile = not_needed_before(group, needed);
    for (std::size_t t = first_; t < needed.size(); ++t)
      if (needed[t] || (t < group.place && !is_small_[t] && !meanwhile[t])) move(t);
    move_sums(group);
    for (std::size_t t = first_; t < group.place; ++t)
      if (meanwhile[t]) move(t);
    while (first_ < tasks_.size() && moved_[first_]) ++first_;
  }

  // Which tasks compute the operands of the group's sums.
  std::vector<bool> needed_by(const Group& group) const {
    std::vector<bool> needed(std::max(group.place, std::ranges::max(group.sums)) + 1, false);
    for (const std::size_t sum : group.sums) needed[sum] = true;
    for (std::size_t t = needed.size(); t-- > first_;)
      if (needed[t]) for_writers(t, [&](std::size_t w) { needed[w] = needed[w] || !moved_[w]; });
    for (const std::size_t sum : group.sums) needed[sum] = false;
    add_reductions(group, needed);
    return needed;
  }

  // Adds the reductions of values that a needed program or reduction reads or writes: one pass can compute both.
  void add_reductions(const Group& group, std::vector<bool>& needed) const {
    const auto reduces = [&](std::size_t t) {
      return !moved_[t] && tasks_[t].nodes.back().op().run_program != nullptr;
    };
    ValueSet values;
    for (std::size_t t = first_; t < needed.size(); ++t) {
      if (!needed[t] || !(reduces(t) || tasks_[t].has_program())) continue;
      for (const std::vector<Expr>* of : {&tasks_[t].reads, &tasks_[t].writes}) values.insert(of->begin(), of->end());
    }
    for (std::size_t t = first_; t < group.place; ++t) {
      if (needed[t] || !reduces(t)) continue;
      bool ready = std::ranges::any_of(tasks_[t].reads, [&](const Expr& read) { return values.contains(read); });
      for_writers(t, [&](std::size_t w) { ready = ready && (needed[w] || moved_[w]); });
      needed[t] = ready;
    }
  }

  // Going back from the group: the tasks that it does not need, up to the first large one, such as the gradient of a
  // layer's weights. More of them would keep values alive for long and delay other transfers.
  std::vector<bool> not_needed_before(const Group& group, const std::vector<bool>& needed) const {
    std::vector<bool> found(group.place, false);
    for (std::size_t t = group.place; t-- > first_;) {
      if (moved_[t] || needed[t] || is_small_[t]) continue;
      if (is_fixed(t)) break;
      found[t] = true;
      const bool waits = tasks_[t].bucketed || tasks_[t].late;  // and runs at the end of the step in any case
      if (!waits && is_large(t)) break;
    }
    return found;
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
  std::vector<bool> is_small_;                // a small sum that is needed at once
  std::vector<std::size_t> place_;            // a task runs no later than the task with this number
  std::map<int, std::vector<Group>> groups_;  // by level
  std::vector<bool> moved_;
  std::size_t first_ = 0;  // the first task that has not moved
  std::vector<Task> ordered_;
};

}  // namespace

Schedule coalesce(Schedule schedule) {
  if (schedule.transfers == 0) return schedule;
  const Uses uses(schedule);
  mark_late(schedule.tasks, uses);
  schedule.tasks = Coalescer(std::move(schedule.tasks), uses).run();
  return schedule;
}

}  // namespace syncline
