#include "ops/control/loop_build.h"

#include <algorithm>
#include <unordered_set>

#include "ops/control/branch.h"
#include "ops/graph/fill.h"
#include "ops/graph/leaf.h"
#include "ops/graph/substitute.h"

namespace syncline {
namespace {

std::uint64_t first_id(const LoopParts& parts) {
  std::uint64_t first = UINT64_MAX;
  for (const auto* leaves : {&parts.elements, &parts.states})
    for (const Expr& leaf : *leaves) first = std::min(first, leaf.node().id);
  return first;
}

// The outside values that the body uses, in order of first use.
std::vector<Expr> find_captures(const LoopParts& parts, std::span<const Expr> roots) {
  std::unordered_set<const Node*> inside;
  for (const auto* leaves : {&parts.elements, &parts.states})
    for (const Expr& leaf : *leaves) inside.insert(&leaf.node());
  std::vector<Expr> captures;
  std::unordered_set<Expr, ExprHash> known;
  const std::uint64_t first = first_id(parts);
  auto use = [&](const Expr& e) {
    if (!inside.contains(&e.node()) && !is_own_number(e, first) && known.insert(e).second) captures.push_back(e);
  };
  for (const auto& node : nodes_since(first, roots, [](const Expr&) { return false; })) {
    const bool depends = std::any_of(node->inputs.begin(), node->inputs.end(),
                                     [&](const Expr& input) { return inside.contains(&input.node()); });
    if (!depends && is_repeatable(*node)) continue;
    inside.insert(node.get());
    for (const Expr& input : node->inputs) use(input);
  }
  for (const Expr& root : roots) use(root);
  return captures;
}

// Finds body values that can be computed outside for all iterations at once: functions of elements only, made of
// elementwise ops and products with fixed matrices.
class WholeSequences {
 public:
  explicit WholeSequences(const Replacements& outside) : outside_(outside) {}

  // Returns the values of all iterations, stacked, or empty.
  Expr of(const Expr& e) {
    if (const auto known = whole_.find(e); known != whole_.end()) return known->second;
    return whole_[e] = build(e);
  }
  void set(const Expr& element, const Expr& sequence) { whole_[element] = sequence; }

  static bool is_product(const Expr& e) { return e.op().name == "dot"; }

 private:
  // Returns the outside value of `e` if it is equal in every iteration, otherwise empty.
  Expr fixed(const Expr& e) const {
    if (is_constant(e)) return e;
    const auto found = outside_.find(e);
    return found == outside_.end() ? Expr{} : found->second;
  }

  // True if an operand may be equal in every iteration. The result has time as a new first axis, to which the operand
  // must broadcast.
  static bool may_be_fixed(const Expr& e, std::size_t operand) {
    if (is_product(e)) return operand == 1;
    if (e.is<Choose>()) return operand == 2;
    if (e.op().name == "broadcast_like") return operand == 0;
    return true;
  }

  Expr build(const Expr& e) {
    const Node& node = e.node();
    const bool elementwise = (node.op->block != nullptr || e.is<Choose>()) && random_op_of(node) == nullptr;
    if (!is_product(e) && !elementwise) return {};
    std::vector<Expr> inputs;
    bool any = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Expr& input = node.inputs[i];
      const Expr same = may_be_fixed(e, i) ? fixed(input) : Expr{};
      // A per-iteration operand must have as many axes as the result, so that the time axes align.
      if (same && input.ndim() <= e.ndim()) inputs.push_back(same);
      else if (input.ndim() == e.ndim() && !(is_product(e) && i == 1)) inputs.push_back(of(input));
      else return {};
      if (!inputs.back()) return {};
      any = any || !same;
    }
    return any ? Expr(make_node(*node.op, node.attrs, std::move(inputs), node.name)) : Expr{};
  }

  const Replacements& outside_;
  std::unordered_map<Expr, Expr, ExprHash> whole_;
};

// Replaces products of elements in the body by new elements.
void hoist_products(LoopParts& parts, std::vector<Expr>& roots, const Replacements& outside) {
  WholeSequences whole(outside);
  for (std::size_t i = 0; i < parts.elements.size(); ++i) whole.set(parts.elements[i], parts.sequences[i]);
  Replacements products;
  for (const auto& node : nodes_since(first_id(parts), roots, [](const Expr&) { return false; })) {
    const Expr e(node);
    if (!WholeSequences::is_product(e)) continue;
    const Expr sequence = whole.of(e);
    if (!sequence) continue;
    products[e] = element_of(sequence);
    parts.elements.push_back(products[e]);
    parts.sequences.push_back(sequence);
  }
  if (!products.empty()) roots = substitute(roots, products);
}

// Drops placeholders that the body does not use. `keep_one` retains one element, which counts the iterations.
void drop_unused(const std::vector<Expr>& roots, std::vector<Expr>& leaves, std::vector<Expr>& values, bool keep_one) {
  std::unordered_set<const Node*> used;
  for (const auto& node : nodes_under(roots)) used.insert(node.get());
  std::vector<Expr> kept, kept_values;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (!used.contains(&leaves[i].node())) continue;
    kept.push_back(leaves[i]);
    kept_values.push_back(values[i]);
  }
  if (kept.empty() && keep_one && !leaves.empty()) {
    kept.push_back(leaves.front());
    kept_values.push_back(values.front());
  }
  leaves = std::move(kept);
  values = std::move(kept_values);
}

}  // namespace

Expr element_of(const Expr& sequence) {
  Shape shape = sequence.shape();
  if (shape.ndim() == 0) fail<ShapeError>(Loop::kName, ": a sequence is a scalar; its first axis must be time");
  shape.erase(0);
  return apply<Placeholder>({}, {sequence.dtype(), shape, 0}, sequence.name());
}

Expr make_loop(LoopParts parts) {
  std::vector<Expr> roots = parts.next_states;
  for (const Residual& r : parts.residuals) roots.push_back(r.value);
  std::vector<Expr> values = find_captures(parts, roots), captures;
  Replacements inside, outside;
  for (const Expr& value : values) {
    captures.push_back(stand_in(value));
    inside[value] = captures.back();
    outside[captures.back()] = value;
  }
  roots = substitute(roots, inside);
  hoist_products(parts, roots, outside);
  drop_unused(roots, parts.elements, parts.sequences, true);
  drop_unused(roots, captures, values, false);

  auto body = std::make_shared<LoopBody>();
  const auto n_states = static_cast<std::ptrdiff_t>(parts.next_states.size());
  body->next_states.assign(roots.begin(), roots.begin() + n_states);
  for (std::size_t i = 0; i < parts.residuals.size(); ++i)
    body->residuals.push_back({roots[parts.next_states.size() + i], parts.residuals[i].sum});
  body->elements = std::move(parts.elements);
  body->states = std::move(parts.states);
  body->captures = std::move(captures);
  body->reverse = parts.reverse;
  std::vector<Expr> inputs = std::move(parts.sequences);
  inputs.insert(inputs.end(), parts.initial_states.begin(), parts.initial_states.end());
  inputs.insert(inputs.end(), values.begin(), values.end());
  return apply<Loop>(std::move(inputs), {std::move(body)});
}

}  // namespace syncline
