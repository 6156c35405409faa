#include "runtime/schedule/uses.h"

#include <cstddef>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace syncline {

Uses::Uses(const Schedule& schedule) : local_(schedule.local()) {
  std::unordered_map<int, int> starts;             // transfer -> its start
  std::vector<std::pair<std::size_t, int>> reads;  // a value's number, a task
  const auto add_read = [&](const Expr& value, int task) {
    reads.emplace_back(number_of(local_.resolve(value).base), task);
  };
  for (int t = 0; t < static_cast<int>(schedule.tasks.size()); ++t) {
    const Task& task = schedule.tasks[static_cast<std::size_t>(t)];
    for (const Expr& read : task.reads) add_read(read, t);
    for (const Guard& guard : task.guards) add_read(guard.condition, t);
    for (const Expr& value : task.writes) {
      Use& use = uses_[number_of(value)];
      use.writer = use.available = t;
    }
    if (task.starts_transfer()) starts[task.transfer] = t;
    if (task.kind != Task::kWait) continue;
    const auto start = starts.find(task.transfer);
    if (start == starts.end()) continue;  // verify() reports it
    for (const Expr& value : schedule.tasks[static_cast<std::size_t>(start->second)].writes)
      uses_[number_of(value)].available = t;
  }
  for (const Expr& root : schedule.roots) uses_[number_of(local_.resolve(root).base)].root = true;
  // A counting sort by value, which keeps the order of tasks. end[v] is where the readers of value v begin, then end.
  std::vector<std::size_t> end(uses_.size() + 1);
  for (const auto& [value, task] : reads) ++end[value + 1];
  std::partial_sum(end.begin(), end.end(), end.begin());
  readers_.resize(reads.size());
  for (const auto& [value, task] : reads) readers_[end[value]++] = task;
  for (std::size_t i = 0, begin = 0; i < uses_.size(); begin = end[i++])
    uses_[i].readers = std::span(readers_).subspan(begin, end[i] - begin);
}

std::size_t Uses::number_of(const Expr& value) {
  const auto [number, fresh] = number_.try_emplace(value, uses_.size());
  if (fresh) uses_.emplace_back();
  return number;
}

const Use& Uses::of(const Expr& value) const {
  static const Use none;
  const std::size_t* found = number_.find(local_.resolve(value).base);
  return found == nullptr ? none : uses_[*found];
}

}  // namespace syncline
