#include "runtime/graph/half_precision.h"

#include <algorithm>

#include "ops/graph/op.h"
#include "syncline/backend/math.h"

namespace syncline {

bool computes_on_float16(const Node& node) {
  if (node.op->takes_float16) return false;
  const auto is_half = [](const Expr& input) { return input.dtype() == DType::kFloat16; };
  return std::any_of(node.inputs.begin(), node.inputs.end(), is_half);
}

Expr on_float32(const Node& node) {
  std::vector<Expr> inputs;
  for (const Expr& input : node.inputs)
    inputs.push_back(input.dtype() == DType::kFloat16 ? cast(input, DType::kFloat32) : input);
  return Expr(make_node(*node.op, node.attrs, std::move(inputs), node.name));
}

}  // namespace syncline
