// Walks the graph from the loss to its leaves and sums the contributions of all uses of a value.
//
// This code is in ops, not in runtime, because the gradient of a loop differentiates the body of the loop.
#include "syncline/backend/gradients.h"

#include <unordered_map>
#include <unordered_set>

#include "ops/graph/op.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"

namespace syncline {
namespace {

using Sums = std::unordered_map<Expr, Expr, ExprHash>;

void accumulate(Sums& sums, const Expr& x, const Expr& dx) {
  const auto [it, first] = sums.emplace(x, dx);
  if (!first) it->second = add(it->second, dx);
}

// The nodes on a path from a node of `wrt` to the outputs.
std::unordered_set<const Node*> nodes_that_depend_on(std::span<const std::shared_ptr<const Node>> nodes,
                                                     std::span<const Expr> wrt) {
  std::unordered_set<const Node*> found;
  for (const Expr& x : wrt) found.insert(&x.node());
  for (const auto& node : nodes)
    for (const Expr& input : node->inputs)
      if (found.contains(&input.node())) found.insert(node.get());
  return found;
}

}  // namespace

std::vector<Expr> backpropagate(std::span<const Expr> outputs, std::span<const Expr> output_gradients,
                                std::span<const Expr> wrt) {
  const auto nodes = nodes_under(outputs);
  const auto relevant = nodes_that_depend_on(nodes, wrt);
  Sums sums;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (output_gradients[i]) accumulate(sums, outputs[i], output_gradients[i]);

  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const auto& node = *it;
    if (!relevant.contains(node.get()) || node->inputs.empty() || node->op->grad == nullptr) continue;
    std::vector<Expr> dy(node->outputs.size());
    bool any = false;
    for (std::size_t k = 0; k < dy.size(); ++k) {
      const auto found = sums.find(Expr(node, static_cast<int>(k)));
      if (found == sums.end()) continue;
      dy[k] = found->second;
      any = true;
    }
    if (!any) continue;
    const std::vector<Expr> dx = node->op->grad(Expr(node), dy);
    SYNCLINE_CHECK(dx.size() == node->inputs.size());
    for (std::size_t i = 0; i < dx.size(); ++i)
      if (dx[i] && relevant.contains(&node->inputs[i].node())) accumulate(sums, node->inputs[i], dx[i]);
  }

  std::vector<Expr> result;
  for (const Expr& x : wrt) {
    const auto found = sums.find(x);
    result.push_back(found == sums.end() ? Expr{} : found->second);
  }
  return result;
}

std::vector<Expr> gradients(const Expr& loss, std::span<const Expr> wrt) {
  if (!is_floating(loss.dtype()))
    fail<DTypeError>("gradients: the loss is ", loss.dtype(), "; cast it to a floating dtype before it is computed");
  const Expr seed = ones_like(loss);
  return backpropagate({&loss, 1}, {&seed, 1}, wrt);
}

}  // namespace syncline
