#include "ops/control/branch.h"

#include <unordered_set>

#include "ops/control/body.h"
#include "ops/control/print.h"
#include "ops/graph/leaf.h"
#include "ops/graph/substitute.h"
#include "ops/kernels/copy/bytes.h"
#include "syncline/backend/core.h"
#include "syncline/backend/gradients.h"

namespace syncline {
namespace {

SYNCLINE_REGISTER_OP(Condition)
SYNCLINE_REGISTER_OP(Choose)
SYNCLINE_REGISTER_OP(Branch)

// Merges the metas of both sides. A dimension that is unknown on one side is unknown in the result: if the condition is
// known, the plan never compares the shapes of the sides.
Meta merge_sides(const Meta& x, const Meta& alt) {
  if (x.dtype != alt.dtype)
    fail<DTypeError>("switch: then_expression is ", x.dtype, " and else_expression ", alt.dtype, "; cast one of them");
  bool fits = x.shape.ndim() == alt.shape.ndim();
  Meta merged = x;
  for (int axis = 0; fits && axis < x.shape.ndim(); ++axis) {
    fits = x.shape[axis] < 0 || alt.shape[axis] < 0 || x.shape[axis] == alt.shape[axis];
    if (alt.shape[axis] < 0) merged.shape[axis] = kUnknown;
  }
  if (!fits)
    fail<ShapeError>("switch: then_expression has the shape ", x.shape, " and else_expression ", alt.shape,
                     "; both must have the same shape");
  return merged;
}

// The outside values that the bodies use: values older than `first` (except integer constants), variables and
// placeholders.
std::vector<Expr> find_captures(std::uint64_t first, const std::vector<Expr>& roots) {
  std::vector<Expr> captures;
  std::unordered_set<Expr, ExprHash> known;
  const auto is_outside = [&](const Expr& e) {
    return e.node().id < first || e.is<Placeholder>() || e.is<VariableLeaf>();
  };
  auto use = [&](const Expr& e) {
    if (is_outside(e) && !is_own_number(e, first) && known.insert(e).second) captures.push_back(e);
  };
  for (const Expr& root : roots) use(root);
  for (const auto& node : nodes_since(first, roots, is_outside))
    for (const Expr& input : node->inputs) use(input);
  return captures;
}

// The gradients of one side with respect to `wrt`. The recomputed forward values must not print again.
std::vector<Expr> side_gradients(const std::vector<Expr>& outputs, std::span<const Expr> dy,
                                 const std::vector<Expr>& wrt) {
  return backpropagate(without_prints(outputs), dy, wrt);
}

}  // namespace

Meta Condition::infer(const Attrs&, std::span<const Meta> in) {
  if (in[0].shape.ndim() != 0)
    fail<ShapeError>("switch: the condition has the shape ", in[0].shape,
                     "; a condition that chooses between functions must be a scalar");
  return {DType::kBool, Shape{}};
}

void Condition::run(const Attrs&, const KernelArgs& k) {
  with_dtype(k.in_dtype(0), [&]<class T>(T) { *k.output<bool>() = *k.input<T>(0) != T{}; });
}

Meta Choose::infer(const Attrs&, std::span<const Meta> in) { return merge_sides(in[0], in[1]); }

Placed Choose::place(const Attrs&, const PlaceArgs& args) {
  const PlaceArgs sides{args.in.first(2), args.out, args.at.first(2), args.rows};
  Placed placed = place_linear(sides);
  placed.in.push_back(Placement::replicated());
  return placed;
}

void Choose::run(const Attrs&, const KernelArgs& k) { kernels::copy_to_output(k.in[*k.input<bool>(2) ? 0 : 1], k); }

Expr Choose::simplify(const Attrs&, std::span<const Expr> in, const Meta&) {
  double condition = 0;
  if (in[0] == in[1]) return in[0];
  if (scalar_value(in[2], condition)) return condition != 0 ? in[0] : in[1];
  return {};
}

std::vector<Expr> Choose::grad(const Attrs&, const Expr& y, const Expr& dy) {
  // Zeros like dy, not like a side: where the condition is known, the other side need not have a shape.
  const Expr zero = zeros_like(dy), condition = y.input(2);
  return {apply<Choose>({dy, zero, condition}), apply<Choose>({zero, dy, condition}), Expr{}};
}

std::vector<Expr> BranchBodies::roots() const {
  std::vector<Expr> all = then_outputs;
  all.insert(all.end(), else_outputs.begin(), else_outputs.end());
  return all;
}

std::string BranchBodies::describe() const {
  BodyNames names;
  name_leaves(names, captures, "capture");
  std::string text = '{' + describe_nodes(names, roots());
  for (const Expr& e : then_outputs) text += " then " + name_of(names, e) + ';';
  for (const Expr& e : else_outputs) text += " else " + name_of(names, e) + ';';
  return text + " }";
}

std::vector<Meta> Branch::infer(const Attrs& a, std::span<const Meta> in) {
  Condition::infer({}, in.first(1));
  const BodyMetas metas = infer_under(kName, a.bodies->roots(), a.bodies->captures, in.subspan(1));
  std::vector<Meta> out;
  for (std::size_t i = 0; i < a.bodies->then_outputs.size(); ++i)
    out.push_back(merge_sides(meta_of(metas, a.bodies->then_outputs[i]), meta_of(metas, a.bodies->else_outputs[i])));
  return out;
}

std::vector<Expr> Branch::grad(const Attrs& a, const Expr& y, std::span<const Expr> dy) {
  std::vector<Expr> inputs = y.node().inputs, wrt = a.bodies->captures, dy_leaves;
  BranchBodies bodies{.captures = wrt, .then_outputs = {}, .else_outputs = {}};
  for (const Expr& d : dy) {
    dy_leaves.push_back(d ? stand_in(d) : Expr{});
    if (!d) continue;
    bodies.captures.push_back(dy_leaves.back());
    inputs.push_back(d);
  }
  const std::vector<Expr> of_then = side_gradients(a.bodies->then_outputs, dy_leaves, wrt),
                          of_else = side_gradients(a.bodies->else_outputs, dy_leaves, wrt);
  std::vector<std::size_t> input_of_output;
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    if (!is_floating(wrt[i].dtype()) || (!of_then[i] && !of_else[i])) continue;
    bodies.then_outputs.push_back(of_then[i] ? of_then[i] : zeros_like(wrt[i]));
    bodies.else_outputs.push_back(of_else[i] ? of_else[i] : zeros_like(wrt[i]));
    input_of_output.push_back(i + 1);
  }
  std::vector<Expr> result(y.node().inputs.size());
  if (input_of_output.empty()) return result;
  const Expr backward = apply<Branch>(std::move(inputs), {std::make_shared<const BranchBodies>(std::move(bodies))});
  for (std::size_t i = 0; i < input_of_output.size(); ++i)
    result[input_of_output[i]] = Expr(backward.handle(), static_cast<int>(i));
  return result;
}

std::vector<Expr> make_branch(const Expr& condition, const BodyFunction& then_body, const BodyFunction& else_body) {
  const Expr truth = apply<Condition>({condition});  // older than all nodes of the bodies
  std::vector<Expr> roots = then_body();
  const std::vector<Expr> other = else_body();
  const auto count = std::ssize(roots);
  if (std::ssize(other) != count)
    fail<ValueError>("switch: then_expression returns ", count, " values and else_expression ", other.size(),
                     "; both must return the same number");
  roots.insert(roots.end(), other.begin(), other.end());
  for (const Expr& root : roots)
    if (!root) fail<ValueError>("switch: a function returned no tensor");
  const std::vector<Expr> values = find_captures(truth.node().id, roots);
  Replacements inside;
  BranchBodies bodies;
  for (const Expr& value : values) {
    bodies.captures.push_back(stand_in(value));
    inside[value] = bodies.captures.back();
  }
  roots = substitute(roots, inside);
  bodies.then_outputs = {roots.begin(), roots.begin() + count};
  bodies.else_outputs = {roots.begin() + count, roots.end()};
  std::vector<Expr> inputs{truth};
  inputs.insert(inputs.end(), values.begin(), values.end());
  const Expr branch = apply<Branch>(std::move(inputs), {std::make_shared<const BranchBodies>(std::move(bodies))});
  std::vector<Expr> results;
  for (int i = 0; i < count; ++i) results.emplace_back(branch.handle(), i);
  return results;
}

}  // namespace syncline
