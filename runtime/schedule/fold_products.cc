#include "runtime/schedule/fold_products.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ops/control/loop.h"

namespace syncline {
namespace {

// As many as a large product takes from each operand at a time (ops/kernels/blocked_product.cc): fewer would read and
// write the result more often.
constexpr std::int64_t kRowsTogether = 256;

std::int64_t rows_of_turn(const Shape& stack) { return stack.product(1, stack.ndim() - 1); }

class ProductFolder {
 public:
  ProductFolder(std::vector<Task> tasks, const std::vector<Expr>& roots, const LocalView& local)
      : tasks_(std::move(tasks)), local_(local) {
    find_writers();
    for (const Expr& root : roots) is_root_.insert(local_.resolve(root).base);
  }

  std::vector<Task> run() {
    for (std::size_t t = 0; t < tasks_.size(); ++t)
      if (tasks_[t].kind == Task::kLoop) fold_into(t);
    std::vector<Task> kept;
    for (std::size_t t = 0; t < tasks_.size(); ++t)
      if (!folded_.contains(t)) kept.push_back(std::move(tasks_[t]));
    return kept;
  }

 private:
  // What is transferred is written when the wait is over.
  void find_writers() {
    std::unordered_map<int, std::size_t> started;
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      const Task& task = tasks_[t];
      if (task.kind == Task::kWait)
        for (const Expr& value : tasks_[started.at(task.transfer)].writes) written_by_[value] = t;
      else if (task.transfer >= 0) started[task.transfer] = t;
      for (const Expr& value : task.writes) written_by_[value] = t;
    }
  }

  void fold_into(std::size_t loop) {
    for (std::size_t t = loop + 1; t < tasks_.size(); ++t)
      if (can_fold(tasks_[t], loop)) fold(t, tasks_[loop]);
    if (!tasks_[loop].products.empty()) drop_stacks(tasks_[loop]);
  }

  bool is_stack(const Expr& value, const Task& loop) const {
    const auto& body = *loop.nodes[0].attrs<Loop::Attrs>().body;
    const std::size_t states = body.states.size(), i = static_cast<std::size_t>(value.output());
    return value.handle() == loop.nodes[0].handle() && i >= states && !body.taps[i - states].sum;
  }

  bool can_fold(const Task& task, std::size_t at) const {
    const Task& loop = tasks_[at];
    if (task.kind != Task::kKernel || task.guards != loop.guards) return false;
    const OpDef& op = task.nodes[0].op();
    if (op.run_more == nullptr || op.scratch != nullptr) return false;
    const std::vector<Expr>& operands = task.nodes[0].node().inputs;
    if (std::none_of(operands.begin(), operands.end(), [&](const Expr& e) { return is_stack(e, loop); })) return false;
    const std::int64_t turns = local_.meta(loop.nodes[0].input(0)).shape[0];
    const std::int64_t together = loop.products.empty() ? turns_together(local_.meta(operands[0]).shape)
                                                        : turns_together(local_.meta(loop.products[0].input(0)).shape);
    return turns > together && std::all_of(operands.begin(), operands.end(), [&](const Expr& e) {
             const Shape shape = local_.meta(e).shape;
             return shape.ndim() > 1 && shape[0] == turns && (is_stack(e, loop) || is_known(e, at));
           });
  }

  // Before a task runs.
  bool is_known(const Expr& value, std::size_t task) const {
    const auto found = written_by_.find(local_.resolve(value).base);
    return found == written_by_.end() || found->second < task;
  }

  void fold(std::size_t t, Task& loop) {
    const Expr& product = tasks_[t].nodes[0];
    loop.products.push_back(product);
    loop.writes.push_back(product);
    for (const Expr& operand : product.node().inputs)
      if (!is_stack(operand, loop)) loop.reads.push_back(operand);
    folded_.insert(t);
  }

  // Those that only products read.
  void drop_stacks(Task& loop) const {
    std::unordered_set<Expr, ExprHash> read = is_root_;
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      if (folded_.contains(t)) continue;
      for (const Expr& value : tasks_[t].reads) read.insert(local_.resolve(value).base);
      for (const Guard& guard : tasks_[t].guards) read.insert(local_.resolve(guard.condition).base);
    }
    const auto passes = [&](const Expr& value) { return is_stack(value, loop) && !read.contains(value); };
    std::copy_if(loop.writes.begin(), loop.writes.end(), std::back_inserter(loop.passing), passes);
    std::erase_if(loop.writes, passes);
  }

  std::vector<Task> tasks_;
  const LocalView& local_;
  std::unordered_map<Expr, std::size_t, ExprHash> written_by_;
  std::unordered_set<Expr, ExprHash> is_root_;
  std::unordered_set<std::size_t> folded_;
};

}  // namespace

std::vector<Task> fold_products(std::vector<Task> tasks, const std::vector<Expr>& roots, const LocalView& local) {
  return ProductFolder(std::move(tasks), roots, local).run();
}

std::int64_t turns_together(const Shape& stack) {
  return std::max<std::int64_t>(1, kRowsTogether / std::max<std::int64_t>(1, rows_of_turn(stack)));
}

}  // namespace syncline
