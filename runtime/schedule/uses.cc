#include "runtime/schedule/uses.h"

namespace syncline {

Uses::Uses(const Schedule& schedule) : local_(schedule.local()) {
  uses_.reserve(2 * schedule.tasks.size());
  std::unordered_map<int, int> starts;  // transfer -> its start
  for (int t = 0; t < static_cast<int>(schedule.tasks.size()); ++t) {
    const Task& task = schedule.tasks[static_cast<std::size_t>(t)];
    for (const Expr& read : task.reads) uses_[local_.resolve(read).base].readers.push_back(t);
    for (const Guard& guard : task.guards) uses_[local_.resolve(guard.condition).base].readers.push_back(t);
    for (const Expr& value : task.writes) uses_[value].writer = uses_[value].available = t;
    if (task.starts_transfer()) starts[task.transfer] = t;
    if (task.kind != Task::kWait) continue;
    const auto start = starts.find(task.transfer);
    if (start == starts.end()) continue;  // verify() reports it
    for (const Expr& value : schedule.tasks[static_cast<std::size_t>(start->second)].writes) uses_[value].available = t;
  }
  for (const Expr& root : schedule.roots) uses_[local_.resolve(root).base].root = true;
}

const Use& Uses::of(const Expr& value) const {
  static const Use none;
  const auto found = uses_.find(local_.resolve(value).base);
  return found == uses_.end() ? none : found->second;
}

}  // namespace syncline
