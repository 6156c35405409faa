#include "runtime/schedule/join_outputs.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ops/shape/join.h"

namespace syncline {
namespace {

constexpr std::size_t kMostParts = 12;  // of one program: each stays in a block buffer until the block's end

class OutputJoiner {
 public:
  OutputJoiner(std::vector<Task> tasks, const std::vector<Expr>& roots, const LocalView& local)
      : tasks_(std::move(tasks)), roots_(roots), local_(local) {}

  std::vector<Task> run() {
    std::vector<Task> kept;
    for (Task& task : tasks_) {
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
    drop_unread(kept);
    return kept;
  }

 private:
  // The fused task that computes everything that this one concatenates, or -1.
  int program_for(const Task& task, const std::vector<Task>& before) {
    if (task.kind != Task::kKernel) return -1;
    const std::vector<Expr>& operands = task.nodes[0].node().inputs;
    std::vector<Meta> metas;
    for (const Expr& operand : operands) metas.push_back(local_.meta(operand));
    const std::vector<StridedWindow> windows = joined_windows(task.nodes[0], metas);
    if (windows.empty()) return -1;
    const auto found = task_of_.find(operands[0]);
    if (found == task_of_.end()) return -1;
    const Task& program = before[static_cast<std::size_t>(found->second)];
    if (program.kind != Task::kFused || program.guards != task.guards) return -1;
    if (parts_[found->second] + operands.size() > kMostParts) return -1;
    const Shape space = local_.meta(program.nodes.back()).shape;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const auto own = task_of_.find(operands[i]);
      if (own == task_of_.end() || own->second != found->second) return -1;
      if (metas[i].shape != space || !side_by_side(space, windows[i])) return -1;
    }
    return found->second;
  }

  // Along the last axis of more than one element.
  static bool side_by_side(const Shape& shape, const StridedWindow& window) {
    int axis = shape.ndim() - 1;
    while (axis > 0 && shape[axis] == 1) --axis;
    return axis >= 0 && window.strides[static_cast<std::size_t>(axis)] == 1;
  }

  // What was stored for a concatenation only need not be stored any more.
  void drop_unread(std::vector<Task>& tasks) const {
    std::unordered_set<Expr, ExprHash> read;
    for (const Expr& root : roots_) read.insert(local_.resolve(root).base);
    for (const Task& task : tasks) {
      for (const Expr& value : task.reads) read.insert(local_.resolve(value).base);
      for (const Guard& guard : task.guards) read.insert(local_.resolve(guard.condition).base);
    }
    for (Task& task : tasks)
      if (!task.joined.empty()) std::erase_if(task.writes, [&](const Expr& value) { return !read.contains(value); });
  }

  std::vector<Task> tasks_;
  const std::vector<Expr>& roots_;
  const LocalView& local_;
  std::unordered_map<Expr, int, ExprHash> task_of_;  // among those kept
  std::unordered_map<int, std::size_t> parts_;       // of concatenations that a task writes
};

}  // namespace

std::vector<Task> join_outputs(std::vector<Task> tasks, const std::vector<Expr>& roots, const LocalView& local) {
  return OutputJoiner(std::move(tasks), roots, local).run();
}

}  // namespace syncline
