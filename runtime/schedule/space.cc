#include "runtime/schedule/space.h"

#include <algorithm>

#include "ops/graph/fill.h"
#include "runtime/placement/collectives.h"

namespace syncline {

Space space_of(const Expr& e, const LocalView& local) {
  const Placement at = local.placement(e);
  return {e.shape(), at.is_split() ? at : Placement::replicated()};
}

Space space_of_program(const Task& task, const LocalView& local) {
  const Expr& last = task.nodes.back();
  return space_of(last.op().block == nullptr ? last.input(0) : last, local);
}

bool reads_gathered(const Task& task, const LocalView& local) {
  return std::any_of(task.reads.begin(), task.reads.end(),
                     [&](const Expr& read) { return local.resolve(read).base.is<AllGather>(); });
}

bool can_take_program(const Task& task, const LocalView& local) {
  if (task.kind != Task::kKernel || task.nodes[0].op().run_program == nullptr) return false;
  const Node& node = task.nodes[0].node();
  if (local.resolve(node.inputs[0]).base.is<Fill>()) return false;  // programs take a fill as one number
  // On a rank with one element of a split inner axis, the reduction would merge the axes beside it, and its rows could
  // become too wide for a program.
  const Placement at = local.placement(node.inputs[0]);
  return (!at.is_split() || at.is_split(0)) && node.op->takes_program(node.attrs.get(), node.inputs[0].meta());
}

std::int64_t bytes_over_all_ranks(const Expr& e) {
  return e.shape().size() * static_cast<std::int64_t>(size_of(e.dtype()));
}

bool may_need_buffer(const Expr& operand, const Space& space, const LocalView& local) {
  return space_of(operand, local) != space || local.resolve(operand).base.is<ReduceScatter>();
}

bool fit_one_program(const Task& first, const Task& second, const LocalView& local) {
  const Space space = space_of_program(first, local);
  std::size_t registers = first.nodes.size() + second.nodes.size() + first.reads.size() + first.strided_views.size();
  for (const Expr& read : second.reads) registers += !contains(first.reads, read) && !contains(first.writes, read);
  for (const Expr& view : second.strided_views) registers += !contains(first.strided_views, view);
  std::size_t broadcast = 0;
  for (const Task* task : {&first, &second}) {
    broadcast += task->strided_views.size();
    for (const Expr& read : task->reads) broadcast += may_need_buffer(read, space, local);
  }
  return first.nodes.size() + second.nodes.size() <= kMostNodes && broadcast <= kMostBroadcastOperands &&
         registers <= kMostRegisters;
}

bool is_strided_view(const Expr& e, const LocalView& local) {
  if (e.op().strided_view == nullptr) return false;
  const Shape& shape = e.shape();
  const StridedView view = e.op().strided_view(e.node().attrs.get(), e.input(0).meta());
  int axis = shape.ndim() - 1;
  while (axis > 0 && shape[axis] == 1) --axis;
  if (axis > 0 && local.placement(e).is_split(axis)) return false;
  return axis < 0 || shape[axis] == 1 || view.strides[static_cast<std::size_t>(axis)] == 1;
}

}  // namespace syncline
