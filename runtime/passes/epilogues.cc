#include <algorithm>

#include "runtime/passes/passes.h"
#include "runtime/placement/collectives.h"
#include "runtime/schedule/space.h"
#include "runtime/schedule/uses.h"

namespace syncline {
namespace {

// Depends on the global shapes only: all ranks must decide alike.
class Finder {
 public:
  explicit Finder(const Schedule& schedule) : tasks_(schedule.tasks), local_(schedule.local()), uses_(schedule) {
    for (std::size_t i = 0; i < schedule.request.updates.size(); ++i)
      new_values_.insert(local_.resolve(schedule.new_value(i)).base);
  }

  // Of the kernels whose value program t reads element by element, as its first reader, the last one. kNoTask if there
  // is none, or if a transfer, a loop or a write of a variable lies between: the kernel would move past it.
  int kernel_of(int t) const {
    const Task& program = task(t);
    if (program.kind != Task::kFused || program.may_throw || reads_other_ranks(program)) return kNoTask;
    int kernel = kNoTask;
    for (const Expr& read : program.reads)
      if (takes_elements_of(read, t)) kernel = std::max(kernel, uses_.of(read).writer);
    for (int between = kernel + 1; kernel != kNoTask && between < t; ++between)
      if (task(between).kind > Task::kReduce || writes_variable(task(between))) return kNoTask;
    return kernel;
  }

 private:
  const Task& task(int t) const { return tasks_[static_cast<std::size_t>(t)]; }

  // Programs may read such values where other ranks have them (passes/transfers/lease.cc).
  bool reads_other_ranks(const Task& program) const {
    return std::ranges::any_of(program.reads, [&](const Expr& read) {
      const Expr& base = local_.resolve(read).base;
      return base.is<AllGather>() || base.is<ReduceScatter>();
    });
  }

  bool writes_variable(const Task& task) const {
    return std::ranges::any_of(task.writes, [&](const Expr& value) { return new_values_.contains(value); });
  }

  bool takes_elements_of(const Expr& read, int t) const {
    const auto [base, offset] = local_.resolve(read);
    const Use& use = uses_.of(base);
    if (use.writer == kNoTask || offset != 0 || use.readers.front() != t || std::ranges::count(use.readers, t) != 1)
      return false;
    const Task &kernel = task(use.writer), &program = task(t);
    const auto cut_from_it = [&](const Expr& view) { return local_.resolve(view.input(0)).base == base; };
    return kernel.kind == Task::kKernel && kernel.nodes[0].op().takes_epilogue && is_floating(base.dtype()) &&
           kernel.part_sum < 0 && kernel.guards == program.guards &&
           space_of(read, local_) == space_of_program(program, local_) &&
           local_.placement(read).is_split() == local_.placement(base).is_split() &&  // not a rank's own rows only
           bytes_over_all_ranks(read) == bytes_over_all_ranks(base) &&
           std::ranges::none_of(program.strided_views, cut_from_it);
  }

  const std::vector<Task>& tasks_;
  const LocalView local_;
  const Uses uses_;
  ValueSet new_values_;  // of variables
};

}  // namespace

Schedule epilogues(Schedule schedule) {
  const int count = static_cast<int>(schedule.tasks.size());
  std::vector<int> kernels(schedule.tasks.size(), kNoTask);  // of programs
  std::vector<bool> moves(schedule.tasks.size());
  const LocalView local = schedule.local();
  const Finder finder(schedule);
  for (int t = 0; schedule.request.fuse && t < count; ++t) {
    const int kernel = kernels[static_cast<std::size_t>(t)] = finder.kernel_of(t);
    if (kernel != kNoTask) moves[static_cast<std::size_t>(kernel)] = true;
  }
  std::vector<Task> tasks;
  tasks.reserve(schedule.tasks.size());
  for (std::size_t t = 0; t < schedule.tasks.size(); ++t) {
    Task& task = schedule.tasks[t];
    if (moves[t]) continue;
    if (kernels[t] != kNoTask) {
      Task& kernel = tasks.emplace_back(std::move(schedule.tasks[static_cast<std::size_t>(kernels[t])]));
      task.epilogue = true;
      // The program then overwrites the kernel's value rather than another operand (passes/assign_memory.cc).
      std::ranges::stable_partition(task.reads,
                                    [&](const Expr& read) { return local.resolve(read).base == kernel.writes[0]; });
    }
    tasks.push_back(std::move(task));
  }
  schedule.tasks = std::move(tasks);
  return schedule;
}

}  // namespace syncline
