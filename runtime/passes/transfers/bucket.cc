#include <algorithm>

#include "runtime/passes/passes.h"
#include "runtime/schedule/uses.h"

namespace syncline {
namespace {

// A sum, and the last task that writes its operands.
struct Ready {
  int task;
  Expr sum;
};

// A task that starts a bucket, and the task that it follows.
struct Start {
  int after = kNoTask;
  Task task{};
};

void add_starts(const Guards& guards, std::vector<Ready>& elements, const Schedule& schedule,
                std::vector<Start>& starts) {
  const LocalView local = schedule.local();
  std::ranges::stable_sort(elements, {}, &Ready::task);
  std::vector<std::pair<DType, std::int64_t>> sizes;
  for (const Ready& ready : elements) sizes.emplace_back(ready.sum.dtype(), local.bytes(ready.sum));
  const std::vector<int> bucket = schedule.request.strategy->bucket(sizes);
  const std::size_t first = starts.size();
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::size_t place = first + static_cast<std::size_t>(bucket[i]);
    starts.resize(std::max(starts.size(), place + 1));
    auto& [after, task] = starts[place];
    after = std::max(after, elements[i].task);
    task.kind = Task::kAllReduce;
    task.bucketed = true;
    task.guards = guards;
    task.nodes.push_back(elements[i].sum);
    task.reads.push_back(elements[i].sum.input(0));
    task.writes.push_back(elements[i].sum);
  }
}

// The buckets. Sums under different guards are in different ones, and a sum that is scattered is in one of its own.
std::vector<Start> make_starts(const Schedule& schedule) {
  const Uses uses(schedule);
  std::vector<std::pair<Guards, std::vector<Ready>>> groups;
  std::vector<Start> starts;
  for (const Task& task : schedule.tasks) {
    if (!task.bucketed) continue;
    Ready ready{kNoTask, task.nodes[0]};
    uses.for_writers(task, [&](int writer) { ready.task = std::max(ready.task, writer); });
    if (task.kind == Task::kReduceScatter) {
      starts.push_back({ready.task, task});
      continue;
    }
    auto same = std::ranges::find(groups, task.guards, &std::pair<Guards, std::vector<Ready>>::first);
    if (same == groups.end()) same = groups.insert(groups.end(), {task.guards, {}});
    same->second.push_back(std::move(ready));
  }
  for (auto& [guards, elements] : groups) add_starts(guards, elements, schedule, starts);
  std::ranges::stable_sort(starts, {}, &Start::after);
  return starts;
}

// Sorts late tasks by the last transfer that they need, so that those of an early bucket run while later buckets are
// under way. Late gathers count after all buckets. `order_of`: maps a bucket's results to the index of its start.
void sort_late(std::vector<Task>& late, ValueMap<int> order_of, int next, const LocalView& local) {
  std::vector<std::pair<int, Task>> needs;
  for (Task& task : late) {
    int last = -1;
    for (const Expr& read : task.reads)
      if (const int* found = order_of.find(local.resolve(read).base)) last = std::max(last, *found);
    const int gives = task.kind == Task::kAllGather ? next++ : last;
    for (const Expr& value : task.writes) order_of[value] = gives;
    needs.emplace_back(last, std::move(task));
  }
  std::stable_sort(needs.begin(), needs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  late.clear();
  for (auto& [last, task] : needs) late.push_back(std::move(task));
}

}  // namespace

Schedule bucket(Schedule schedule) {
  if (schedule.transfers == 0) return schedule;
  std::vector<Start> starts = make_starts(schedule);
  std::vector<Task> tasks, late;
  ValueMap<int> order_of;
  for (int t = kNoTask, next = 0; t < std::ssize(schedule.tasks); ++t) {
    if (t != kNoTask) {
      Task& task = schedule.tasks[static_cast<std::size_t>(t)];
      if (!task.bucketed) (task.late ? late : tasks).push_back(std::move(task));
    }
    for (; next < std::ssize(starts) && starts[static_cast<std::size_t>(next)].after == t; ++next) {
      Task& start = starts[static_cast<std::size_t>(next)].task;
      start.transfer = schedule.transfers++;
      for (const Expr& sum : start.nodes) order_of[sum] = next;
      tasks.push_back(std::move(start));
    }
  }
  sort_late(late, std::move(order_of), static_cast<int>(starts.size()), schedule.local());
  std::ranges::move(late, std::back_inserter(tasks));
  schedule.tasks = std::move(tasks);
  return schedule;
}

}  // namespace syncline
