#include <algorithm>

#include "runtime/passes/passes.h"

namespace syncline {
namespace {

class Divider {
 public:
  explicit Divider(Schedule& schedule)
      : schedule_(schedule), local_(schedule.local()), rows_(schedule.request.shares->own_parts()) {}

  void run() {
    for (Task& task : schedule_.tasks)
      if (task.kind == Task::kKernel || task.kind == Task::kReduce) divide(task);
  }

 private:
  void divide(Task& task) {
    const Expr& value = task.nodes.back();
    const Placement at = local_.placement(value);
    if (!at.is_partial() && !at.is_extreme()) return;
    const std::vector<Expr>& inputs = value.node().inputs;
    std::vector<int> axes;
    for (const Expr& input : inputs) {
      const Placement p = local_.placement(input);
      SYNCLINE_CHECK(!p.is_part_of_variable());
      axes.push_back(p.is_split() ? p.axis : -1);
    }
    if (std::all_of(axes.begin(), axes.end(), [](int axis) { return axis < 0; })) return;
    if (const RowParts parts = parts_of(inputs[0], axes[0]); supports(value, parts)) {
      task.parts = parts;
    } else if (rows_.size() > 2) {
      SYNCLINE_CHECK(at.is_partial() && task.kind == Task::kKernel && task.writes.size() == 1 && task.reads == inputs);
      task.part_sum = static_cast<int>(schedule_.part_sums.size());
      schedule_.part_sums.emplace_back(value.op(), value.node().attrs.get(), local_.metas(inputs), local_.meta(value),
                                       std::move(axes), rows_);
    }
  }

  // No parts if the input has no rows.
  RowParts parts_of(const Expr& input, int axis) {
    if (axis < 0) return {};
    const std::int64_t size = local_.meta(input).shape[axis], rows = rows_.back();
    return {axis,
            schedule_.borders.add(rows_.size(), [&](std::size_t i) { return elements_before(rows_[i], rows, size); })};
  }

  bool supports(const Expr& value, const RowParts& parts) const {
    const OpDef& op = value.op();
    return op.parts_scratch != nullptr && !parts.empty() &&
           op.parts_scratch(value.node().attrs.get(), local_.metas(value.node().inputs), parts).has_value();
  }

  Schedule& schedule_;
  const LocalView local_;
  const std::vector<std::int64_t> rows_;  // where the parts begin among this rank's rows
};

}  // namespace

Schedule divide_sums(Schedule schedule) {
  if (!schedule.request.shares->parts.empty()) Divider(schedule).run();
  return schedule;
}

}  // namespace syncline
