#include <algorithm>

#include "ops/control/loop.h"
#include "runtime/passes/passes.h"
#include "runtime/schedule/uses.h"

namespace syncline {
namespace {

// The rows in a block of a large product (ops/kernels/product/blocked_product.cc). Fewer rows would read and write the
// result more often.
constexpr std::int64_t kRowsTogether = 256;

std::int64_t rows_of_iteration(const Shape& stack) { return stack.product(1, stack.ndim() - 1); }

class ProductFolder {
 public:
  explicit ProductFolder(const Schedule& schedule)
      : tasks_(schedule.tasks), local_(schedule.local()), uses_(schedule), is_folded_(schedule.tasks.size()) {}

  std::vector<Task> run() {
    for (std::size_t t = 0; t < tasks_.size(); ++t)
      if (tasks_[t].kind == Task::kLoop) fold_into(t);
    std::vector<Task> kept;
    for (std::size_t t = 0; t < tasks_.size(); ++t)
      if (!is_folded_[t]) kept.push_back(std::move(tasks_[t]));
    return kept;
  }

 private:
  void fold_into(std::size_t loop) {
    for (std::size_t t = loop + 1; t < tasks_.size(); ++t)
      if (can_fold(tasks_[t], loop)) fold(t, tasks_[loop]);
    if (!tasks_[loop].products.empty()) drop_stacks(tasks_[loop]);
  }

  bool is_stack(const Expr& value, const Task& loop) const {
    const auto& body = *loop.nodes[0].attrs<Loop::Attrs>().body;
    const std::size_t states = body.states.size(), i = static_cast<std::size_t>(value.output());
    return value.handle() == loop.nodes[0].handle() && i >= states && !body.residuals[i - states].sum;
  }

  // A loop adds iteration by iteration, not part by part.
  bool can_fold(const Task& task, std::size_t at) const {
    const Task& loop = tasks_[at];
    if (task.kind != Task::kKernel || task.guards != loop.guards) return false;
    const OpDef& op = task.nodes[0].op();
    if (op.accumulate == nullptr) return false;
    if (local_.placement(task.nodes[0]).is_partial() && !local_.shares().parts.empty()) return false;
    const std::vector<Expr>& operands = task.nodes[0].node().inputs;
    if (std::none_of(operands.begin(), operands.end(), [&](const Expr& e) { return is_stack(e, loop); })) return false;
    const std::int64_t iterations = local_.meta(loop.nodes[0].input(0)).shape[0];
    const std::int64_t together = loop.products.empty()
                                      ? iterations_together(local_.meta(operands[0]).shape)
                                      : iterations_together(local_.meta(loop.products[0].input(0)).shape);
    return iterations > together && std::all_of(operands.begin(), operands.end(), [&](const Expr& e) {
             const Shape shape = local_.meta(e).shape;
             return shape.ndim() > 1 && shape[0] == iterations && (is_stack(e, loop) || is_known(e, at));
           });
  }

  // True if the value is available before the task.
  bool is_known(const Expr& value, std::size_t task) const {
    return uses_.of(value).available < static_cast<int>(task);
  }

  void fold(std::size_t t, Task& loop) {
    const Expr& product = tasks_[t].nodes[0];
    loop.products.push_back(product);
    loop.writes.push_back(product);
    for (const Expr& operand : product.node().inputs)
      if (!is_stack(operand, loop)) loop.reads.push_back(operand);
    is_folded_[t] = true;
  }

  // Makes the stacks that only products read passing: they hold a few iterations.
  void drop_stacks(Task& loop) const {
    const auto passes = [&](const Expr& value) {
      const Use& use = uses_.of(value);
      return is_stack(value, loop) && !use.root && std::all_of(use.readers.begin(), use.readers.end(), [&](int reader) {
               return is_folded_[static_cast<std::size_t>(reader)];
             });
    };
    std::copy_if(loop.writes.begin(), loop.writes.end(), std::back_inserter(loop.passing), passes);
    std::erase_if(loop.writes, passes);
  }

  std::vector<Task> tasks_;
  const LocalView local_;
  const Uses uses_;
  std::vector<bool> is_folded_;
};

}  // namespace

Schedule fold_products(Schedule schedule) {
  const auto is_loop = [](const Task& task) { return task.kind == Task::kLoop; };
  if (std::any_of(schedule.tasks.begin(), schedule.tasks.end(), is_loop))
    schedule.tasks = ProductFolder(schedule).run();
  return schedule;
}

std::int64_t iterations_together(const Shape& stack) {
  return std::max<std::int64_t>(1, kRowsTogether / std::max<std::int64_t>(1, rows_of_iteration(stack)));
}

}  // namespace syncline
