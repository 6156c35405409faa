#include <algorithm>
#include <unordered_map>

#include "ops/shape/join.h"
#include "runtime/passes/passes.h"
#include "runtime/schedule/uses.h"

namespace syncline {
namespace {

constexpr std::size_t kMostParts = 12;  // per program; each occupies a block buffer until the block's end

class OutputJoiner {
 public:
  explicit OutputJoiner(const LocalView& local) : local_(local) {}

  std::vector<Task> run(std::vector<Task> tasks) {
    std::vector<Task> kept;
    kept.reserve(tasks.size());
    for (Task& task : tasks) {
      const int into = program_for(task, kept);
      if (into < 0) {
        for (const Expr& node : task.nodes) task_of_[node] = static_cast<int>(kept.size());
        kept.push_back(std::move(task));
        continue;
      }
      Task& program = kept[static_cast<std::size_t>(into)];
      program.joined.push_back(task.nodes[0]);
      program.writes.push_back(task.nodes[0]);
      parts_[into] += task.nodes[0].node().inputs.size();
    }
    return kept;
  }

 private:
  // The fused task that computes all operands of this concatenation, or -1. Excludes tasks with reductions, whose
  // results must be the last outputs.
  int program_for(const Task& task, const std::vector<Task>& before) {
    if (task.kind != Task::kKernel) return -1;
    const std::vector<Expr>& operands = task.nodes[0].node().inputs;
    const std::vector<Meta> metas = local_.metas(operands);
    const std::vector<StridedView> views = joined_views(task.nodes[0], metas);
    if (views.empty()) return -1;
    const int* found = task_of_.find(operands[0]);
    if (found == nullptr) return -1;
    const Task& program = before[static_cast<std::size_t>(*found)];
    if (program.kind != Task::kFused || program.guards != task.guards) return -1;
    if (parts_[*found] + operands.size() > kMostParts) return -1;
    const Shape space = local_.meta(program.nodes.back()).shape;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const int* own = task_of_.find(operands[i]);
      if (own == nullptr || *own != *found) return -1;
      if (metas[i].shape != space || !side_by_side(space, views[i])) return -1;
    }
    return *found;
  }

  // True if the last axis with more than one element is contiguous.
  static bool side_by_side(const Shape& shape, const StridedView& view) {
    int axis = shape.ndim() - 1;
    while (axis > 0 && shape[axis] == 1) --axis;
    return axis >= 0 && view.strides[static_cast<std::size_t>(axis)] == 1;
  }

  const LocalView local_;
  ValueMap<int> task_of_;                       // index of a node's task in `kept`
  std::unordered_map<int, std::size_t> parts_;  // operands of the concatenations that a task writes
};

// Stops storing values that only a joined concatenation read.
void drop_unread(Schedule& schedule) {
  const auto joins = [](const Task& task) { return !task.joined.empty(); };
  if (std::none_of(schedule.tasks.begin(), schedule.tasks.end(), joins)) return;
  const Uses uses(schedule);
  const auto is_unread = [&](const Expr& value) { return !uses.of(value).root && uses.of(value).readers.empty(); };
  for (Task& task : schedule.tasks)
    if (!task.joined.empty()) std::erase_if(task.writes, is_unread);
}

}  // namespace

Schedule join_outputs(Schedule schedule) {
  schedule.tasks = OutputJoiner(schedule.local()).run(std::move(schedule.tasks));
  drop_unread(schedule);
  return schedule;
}

}  // namespace syncline
