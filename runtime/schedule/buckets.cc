#include "runtime/schedule/buckets.h"

#include <algorithm>

namespace syncline {
namespace {

constexpr int kNoTask = -1;  // before the first

class BucketPlaces {
 public:
  BucketPlaces(std::vector<Task>& tasks, const GuardedNodes& guarded, const LocalView& local)
      : tasks_(tasks), guarded_(guarded), local_(local) {
    find_writers();
  }

  // Sums that are needed in some steps only are scaled, say, by tasks of their own, which were written behind all
  // others: so are accumulated gradients. They move to where their operands are ready, so that the wire can begin.
  void move_up(const std::vector<Expr>& sums) {
    std::vector<bool> moves(tasks_.size(), false);
    for (const Expr& sum : sums) {
      const int last = guarded_.of(sum.node()).empty() ? kNoTask : writer(sum.input(0));
      if (!is_fused(last)) continue;
      moves[static_cast<std::size_t>(last)] = true;
      for (const Expr& read : tasks_[static_cast<std::size_t>(last)].reads)
        if (const int before = writer(read); is_fused(before)) moves[static_cast<std::size_t>(before)] = true;
    }
    if (std::find(moves.begin(), moves.end(), true) == moves.end()) return;
    std::vector<int> place(tasks_.size());                    // a task that moves: the last one before it that does not
    std::vector<std::vector<int>> behind(tasks_.size() + 1);  // which tasks move behind task i - 1
    for (int t = 0; t < count(); ++t) {
      const auto i = static_cast<std::size_t>(t);
      place[i] = t;
      if (!moves[i]) continue;
      place[i] = kNoTask;
      for_writers(tasks_[i].reads, tasks_[i].guards,
                  [&](int before) { place[i] = std::max(place[i], place[static_cast<std::size_t>(before)]); });
      behind[static_cast<std::size_t>(place[i] + 1)].push_back(t);
    }
    std::vector<Task> moved;
    for (int t = kNoTask; t < count(); ++t) {
      if (t != kNoTask && !moves[static_cast<std::size_t>(t)])
        moved.push_back(std::move(tasks_[static_cast<std::size_t>(t)]));
      for (const int later : behind[static_cast<std::size_t>(t + 1)])
        moved.push_back(std::move(tasks_[static_cast<std::size_t>(later)]));
    }
    tasks_ = std::move(moved);
    find_writers();
  }

  // The tasks that start buckets, in order, each with the task behind which it belongs.
  std::vector<std::pair<int, Task>> make_starts(const std::vector<Expr>& sums, const Distributor& distributor) const {
    std::vector<std::pair<Guards, std::vector<Ready>>> groups;
    for (const Expr& sum : sums) {
      const Guards& guards = guarded_.of(sum.node());
      auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == guards; });
      if (same == groups.end()) same = groups.insert(groups.end(), {guards, {}});
      Ready ready{kNoTask, sum};
      for_writers(sum.node().inputs, guards, [&](int before) { ready.task = std::max(ready.task, before); });
      same->second.push_back(std::move(ready));
    }
    std::vector<std::pair<int, Task>> starts;
    for (auto& [guards, elements] : groups) add_starts(guards, elements, distributor, starts);
    std::stable_sort(starts.begin(), starts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return starts;
  }

 private:
  struct Ready {
    int task;  // that writes it
    Expr sum;
  };

  int count() const { return static_cast<int>(tasks_.size()); }
  bool is_fused(int task) const {
    return task != kNoTask && tasks_[static_cast<std::size_t>(task)].kind == Task::kFused;
  }

  void find_writers() {
    writers_.clear();
    for (int t = 0; t < count(); ++t)
      for (const Expr& value : tasks_[static_cast<std::size_t>(t)].writes) writers_[value] = t;
  }

  int writer(const Expr& value) const {
    const auto found = writers_.find(local_.resolve(value).base);
    return found == writers_.end() ? kNoTask : found->second;
  }

  template <class F>
  void for_writers(const std::vector<Expr>& values, const Guards& guards, F f) const {
    for (const Expr& value : values)
      if (const int task = writer(value); task != kNoTask) f(task);
    for (const Guard& guard : guards)
      if (const int task = writer(guard.condition); task != kNoTask) f(task);
  }

  void add_starts(const Guards& guards, std::vector<Ready>& elements, const Distributor& distributor,
                  std::vector<std::pair<int, Task>>& starts) const {
    std::stable_sort(elements.begin(), elements.end(), [](const auto& a, const auto& b) { return a.task < b.task; });
    std::vector<std::pair<DType, std::int64_t>> sizes;
    for (const Ready& ready : elements) sizes.emplace_back(ready.sum.dtype(), local_.bytes(ready.sum));
    const std::vector<int> bucket = distributor.bucket(sizes);
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

  std::vector<Task>& tasks_;
  const GuardedNodes& guarded_;
  const LocalView& local_;
  std::unordered_map<Expr, int, ExprHash> writers_;
};

}  // namespace

std::unordered_map<const Node*, int> place_buckets(std::vector<Task>& tasks, const std::vector<Expr>& sums,
                                                   const GuardedNodes& guarded, const LocalView& local,
                                                   const Distributor* distributor, int& transfers) {
  std::unordered_map<const Node*, int> bucket_of;
  if (sums.empty()) return bucket_of;
  BucketPlaces places(tasks, guarded, local);
  places.move_up(sums);
  std::vector<std::pair<int, Task>> starts = places.make_starts(sums, *distributor);
  std::vector<Task> merged;
  std::size_t next = 0;
  for (int t = kNoTask; t < static_cast<int>(tasks.size()); ++t) {
    if (t != kNoTask) merged.push_back(std::move(tasks[static_cast<std::size_t>(t)]));
    for (; next < starts.size() && starts[next].first == t; ++next) {
      Task& start = starts[next].second;
      start.transfer = transfers++;
      for (const Expr& sum : start.nodes) bucket_of[&sum.node()] = static_cast<int>(next);
      merged.push_back(std::move(start));
    }
  }
  tasks = std::move(merged);
  return bucket_of;
}

}  // namespace syncline
