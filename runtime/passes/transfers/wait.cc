#include <unordered_map>

#include "runtime/passes/passes.h"

namespace syncline {

Schedule wait(Schedule schedule) {
  if (schedule.transfers == 0) return schedule;
  const LocalView local = schedule.local();
  ValueMap<int> pending;  // a result -> its transfer
  std::unordered_map<int, Task> waits;
  std::vector<Task> tasks;
  const auto wait_for = [&](int transfer) {
    if (auto wait = waits.extract(transfer)) tasks.push_back(std::move(wait.mapped()));
  };
  for (const Task& task : schedule.tasks) {
    if (!task.starts_transfer()) continue;
    for (const Expr& value : task.writes) pending[value] = task.transfer;
    waits[task.transfer] = {.kind = Task::kWait, .transfer = task.transfer, .guards = task.guards};
  }
  for (Task& task : schedule.tasks) {
    for (const Expr& read : task.reads)
      if (const int* transfer = pending.find(local.resolve(read).base)) wait_for(*transfer);
    tasks.push_back(std::move(task));
  }
  for (int transfer = 0; transfer < schedule.transfers; ++transfer) wait_for(transfer);
  schedule.tasks = std::move(tasks);
  return schedule;
}

}  // namespace syncline
