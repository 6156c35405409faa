#include "runtime/graph/share_dense_rows.h"

#include "ops/graph/op.h"
#include "ops/graph/substitute.h"
#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

bool scales(const Expr& e) {
  const std::string_view op = e.op().name;
  if (op == "neg") return true;
  return (op == "mul" || op == "div") && e.input(1).shape().is_known() && e.input(1).shape().size() == 1;
}

// If `values` scales the rows of one of the dense gradients: the same scaling of this gradient. Otherwise empty.
Expr dense_form(const Expr& values, const Expr& indices, std::span<const Expr> dense) {
  for (const Expr& d : dense)
    if (d.input(0) == values && d.input(1) == indices) return d;
  if (!scales(values)) return {};
  const Expr inner = dense_form(values.input(0), indices, dense);
  if (!inner) return {};
  if (values.node().inputs.size() == 1) return neg(inner);
  const Expr factor = reshape(values.input(1), Shape{});
  return values.op().name == "mul" ? mul(inner, factor) : div(inner, factor);
}

}  // namespace

std::vector<Expr> share_dense_rows(std::span<const Expr> roots) {
  const auto nodes = nodes_under(roots);
  std::vector<Expr> dense;
  for (const auto& node : nodes)
    if (node->op->name == "scatter_rows") dense.emplace_back(node);
  Replacements replaced;
  for (const auto& node : nodes) {
    if (node->op->name != "scatter_sub" || node->inputs[0].op().leaf) continue;
    const Expr change = dense_form(node->inputs[1], node->inputs[2], dense);
    if (!change) continue;
    const Expr rewritten = replaced[Expr(node)] = sub(node->inputs[0], change);
    check_rewrite(Expr(node), rewritten);
  }
  return substitute(roots, replaced);
}

}  // namespace syncline
