#include "ops/control/sizes.h"

#include <unordered_set>

#include "ops/control/branch.h"
#include "ops/control/loop.h"
#include "ops/graph/deferred.h"

namespace syncline {
namespace {

// The inputs whose captured values are sizes within a body.
std::vector<Expr> sizes_captured(std::span<const Expr> roots, std::span<const Expr> captures,
                                 std::span<const Expr> inputs) {
  std::unordered_set<Expr, ExprHash> sizes;
  for (const auto& node : nodes_under(roots))
    for (const Expr& size : sizes_read_by(*node)) sizes.insert(size);
  std::vector<Expr> found;
  for (std::size_t i = 0; i < captures.size(); ++i)
    if (sizes.contains(captures[i])) found.push_back(inputs[i]);
  return found;
}

}  // namespace

std::vector<Expr> sizes_read_by(const Node& node) {
  const std::span<const Expr> inputs(node.inputs);
  if (node.op == &def_of<Loop>()) {
    const LoopBody& body = *static_cast<const Loop::Attrs*>(node.attrs.get())->body;
    return sizes_captured(body.roots(), body.captures, inputs.last(body.captures.size()));
  }
  if (node.op == &def_of<Branch>()) {
    const BranchBodies& bodies = *static_cast<const Branch::Attrs*>(node.attrs.get())->bodies;
    return sizes_captured(bodies.roots(), bodies.captures, inputs.last(bodies.captures.size()));
  }
  const std::span<const Expr> numbers = numbers_of(node);
  return {numbers.begin(), numbers.end()};
}

}  // namespace syncline
