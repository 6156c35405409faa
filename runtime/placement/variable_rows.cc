#include "runtime/placement/variable_rows.h"

#include <algorithm>

#include "ops/graph/op.h"

namespace syncline {
namespace {

// Enough for the ranks of a node to have about equal parts.
constexpr std::int64_t kLeastRows = 64;

// True if the operand has no axis among the leading axes, which become rows.
bool has_no_rows(const Shape& operand, const Shape& shape, int leading) {
  const int shift = shape.ndim() - operand.ndim();
  for (int axis = 0; axis < operand.ndim(); ++axis)
    if (axis + shift < leading && operand[axis] != 1) return false;
  return true;
}

}  // namespace

int row_axes(const Shape& shape) {
  int axes = 1;
  for (std::int64_t rows = shape[0]; axes < shape.ndim() && rows < kLeastRows; ++axes) rows *= shape[axes];
  return axes;
}

Shape rows_of(const Shape& shape) {
  const int axes = row_axes(shape);
  std::vector<std::int64_t> dims{shape.product(0, axes)};
  dims.insert(dims.end(), shape.begin() + axes, shape.end());
  return Shape(dims);
}

bool runs_by_rows(const Node& node) {
  if (node.op->block == nullptr || node.op->may_throw != nullptr || node.outputs.size() != 1) return false;
  const Shape& shape = node.outputs[0].shape;
  if (shape.ndim() == 0) return false;
  return std::ranges::all_of(node.inputs, [&](const Expr& input) {
    return input.shape() == shape || has_no_rows(input.shape(), shape, row_axes(shape));
  });
}

RowValues values_by_rows(std::span<const Expr> roots, std::span<const Placement> wanted) {
  RowValues found;
  if (std::ranges::none_of(wanted, [](Placement p) { return p.is_by_rows_of_variable(); })) return found;
  ValueMap<int> readers, by_rows;  // how many readers a value has, and how many of them need rows only
  const auto nodes = nodes_under(roots);
  for (const auto& node : nodes)
    for (const Expr& input : node->inputs) ++readers[input];
  for (std::size_t i = 0; i < roots.size(); ++i) {
    ++readers[roots[i]];
    if (wanted[i].is_by_rows_of_variable()) ++by_rows[roots[i]];
  }
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const Node& node = **it;
    for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) {
      const Expr output(*it, i);
      if (const int* of_rows = by_rows.find(output); of_rows != nullptr && *of_rows == readers.at(output))
        found.wanted.insert(output);
    }
    const Expr value(*it);
    if (!found.wanted.contains(value) || !runs_by_rows(node)) continue;
    found.computed.insert(value);
    for (const Expr& input : node.inputs)
      if (input.shape() == value.shape()) ++by_rows[input];
  }
  return found;
}

}  // namespace syncline
