#include <algorithm>

#include "runtime/passes/passes.h"
#include "runtime/schedule/uses.h"

namespace syncline {
namespace {

// Where buckets start among the tasks before the late ones.
class BucketPlaces {
 public:
  BucketPlaces(const std::vector<Task>& tasks, const LocalView& local) : local_(local) {
    for (std::size_t t = 0; t < tasks.size(); ++t)
      for (const Expr& value : tasks[t].writes) writers_[value] = static_cast<int>(t);
  }

  // The tasks that start buckets, each with the number of the task that it follows. Sums under different guards are
  // in different buckets.
  std::vector<std::pair<int, Task>> make_starts(const std::vector<Task>& sums, const Strategy& strategy) const {
    std::vector<std::pair<Guards, std::vector<Ready>>> groups;
    for (const Task& sum : sums) {
      auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == sum.guards; });
      if (same == groups.end()) same = groups.insert(groups.end(), {sum.guards, {}});
      Ready ready{kNoTask, sum.nodes[0]};
      for_writers(sum, [&](int before) { ready.task = std::max(ready.task, before); });
      same->second.push_back(std::move(ready));
    }
    std::vector<std::pair<int, Task>> starts;
    for (auto& [guards, elements] : groups) add_starts(guards, elements, strategy, starts);
    std::stable_sort(starts.begin(), starts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return starts;
  }

 private:
  struct Ready {
    int task;  // the last writer of its operands
    Expr sum;
  };

  int writer(const Expr& value) const { return writers_.value_or(local_.resolve(value).base, kNoTask); }

  // Calls f with the writers of a task's operands and guard conditions.
  template <class F>
  void for_writers(const Task& of, F f) const {
    for (const Expr& value : of.reads)
      if (const int task = writer(value); task != kNoTask) f(task);
    for (const Guard& guard : of.guards)
      if (const int task = writer(guard.condition); task != kNoTask) f(task);
  }

  void add_starts(const Guards& guards, std::vector<Ready>& elements, const Strategy& strategy,
                  std::vector<std::pair<int, Task>>& starts) const {
    std::stable_sort(elements.begin(), elements.end(), [](const auto& a, const auto& b) { return a.task < b.task; });
    std::vector<std::pair<DType, std::int64_t>> sizes;
    for (const Ready& ready : elements) sizes.emplace_back(ready.sum.dtype(), local_.bytes(ready.sum));
    const std::vector<int> bucket = strategy.bucket(sizes);
    const std::size_t first = starts.size();
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const std::size_t place = first + static_cast<std::size_t>(bucket[i]);
      starts.resize(std::max(starts.size(), place + 1), {kNoTask, {}});
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

  const LocalView local_;
  ValueMap<int> writers_;
};

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
  std::vector<Task> early, sums, late;
  for (Task& task : schedule.tasks) (task.bucketed ? sums : task.late ? late : early).push_back(std::move(task));
  schedule.tasks.clear();
  const LocalView local = schedule.local();
  std::vector<std::pair<int, Task>> starts;
  if (!sums.empty()) starts = BucketPlaces(early, local).make_starts(sums, *schedule.request.strategy);
  ValueMap<int> order_of;
  std::size_t next = 0;
  for (int t = kNoTask; t < static_cast<int>(early.size()); ++t) {
    if (t != kNoTask) schedule.tasks.push_back(std::move(early[static_cast<std::size_t>(t)]));
    for (; next < starts.size() && starts[next].first == t; ++next) {
      Task& start = starts[next].second;
      start.transfer = schedule.transfers++;
      for (const Expr& sum : start.nodes) order_of[sum] = static_cast<int>(next);
      schedule.tasks.push_back(std::move(start));
    }
  }
  sort_late(late, std::move(order_of), static_cast<int>(starts.size()), local);
  std::move(late.begin(), late.end(), std::back_inserter(schedule.tasks));
  return schedule;
}

}  // namespace syncline
