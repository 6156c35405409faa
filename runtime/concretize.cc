#include "runtime/concretize.h"

#include <algorithm>
#include <unordered_set>

#include "ops/control/loop.h"
#include "ops/core.h"
#include "ops/core/fill.h"
#include "ops/core/phase.h"
#include "ops/leaf.h"
#include "ops/linalg/rows.h"
#include "ops/math.h"
#include "ops/op.h"
#include "runtime/evaluate.h"
#include "runtime/half_precision.h"
#include "runtime/loop_graph.h"

namespace syncline {
namespace {

class Concretizer {
 public:
  explicit Concretizer(const Bindings& bindings) : bindings_(bindings) {}

  std::vector<Expr> run(std::span<const Expr> roots) {
    for (const auto& node : live_nodes(roots)) rewrite(node);
    std::vector<Expr> result;
    for (const Expr& root : roots) result.push_back(of(root));
    return result;
  }

 private:
  // What a step can need, without the branches that the phase rules out.
  std::vector<std::shared_ptr<const Node>> live_nodes(std::span<const Expr> roots) {
    std::vector<std::shared_ptr<const Node>> found;
    std::unordered_set<const Node*> seen;
    auto visit = [&](const Expr& e) {
      if (seen.insert(&e.node()).second) found.push_back(e.handle());
    };
    for (const Expr& root : roots) visit(root);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto node = found[i];
      if (bindings_.contains(Expr(node))) continue;
      double phase = 0;
      if (node->op == &def_of<InPhase>() && known_phase(node->inputs[0], phase)) {
        const Expr& taken = node->inputs[phase != 0 ? 1 : 2];
        branch_[node.get()] = taken;
        visit(taken);
      } else {
        for (const Expr& input : node->inputs) visit(input);
      }
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a->id < b->id; });
    return found;
  }

  bool known_phase(const Expr& phase, double& value) const {
    const auto bound = bindings_.find(phase);
    return scalar_value(bound == bindings_.end() ? phase : bound->second, value);
  }

  Expr of(const Expr& old) const {
    const auto found = done_.find(old);
    SYNCLINE_CHECK(found != done_.end());
    return found->second;
  }

  void rewrite(const std::shared_ptr<const Node>& node) {
    const Expr old(node);
    if (const auto bound = bindings_.find(old); bound != bindings_.end()) {
      done_[old] = bound->second;
    } else if (const auto taken = branch_.find(node.get()); taken != branch_.end()) {
      done_[old] = of(taken->second);
    } else {
      std::vector<Expr> inputs;
      for (const Expr& input : node->inputs) inputs.push_back(of(input));
      const bool same = inputs == node->inputs && std::all_of(node->outputs.begin(), node->outputs.end(),
                                                              [](const Meta& m) { return m.shape.is_known(); });
      if (node->op == &def_of<Loop>()) {
        const std::vector<Expr> outputs = concretize_loop(old, inputs);
        for (std::size_t i = 0; i < outputs.size(); ++i) done_[Expr(node, static_cast<int>(i))] = outputs[i];
        return;
      }
      const auto fresh = same ? node : make_node(*node->op, node->attrs, std::move(inputs), node->name);
      if (node->outputs.size() == 1) {
        done_[old] = simplify(Expr(fresh));
        return;
      }
      const Expr kept = unique(computes_on_float16(*fresh) ? with_simple_inputs(on_float32(*fresh)) : Expr(fresh));
      for (int i = 0; i < static_cast<int>(node->outputs.size()); ++i) {
        const Expr output(kept.handle(), i);
        done_[Expr(node, i)] = simplify(cast(output, Expr(node, i).dtype()));
      }
    }
  }

  // Applies the op's own rewrites until nothing changes. A rewrite may return several new nodes, whose inputs are
  // already simplified or new as well.
  Expr simplify(const Expr& e) {
    if (const auto known = simplified_.find(e); known != simplified_.end()) return known->second;
    if (e.node().outputs.size() > 1) return e;
    const Expr now = with_simple_inputs(e);
    const Node& node = now.node();
    Expr result;
    if (computes_on_float16(node)) result = cast(on_float32(node), now.dtype());
    else if (node.op->simplify != nullptr) result = node.op->simplify(node.attrs.get(), node.inputs, now.meta());
    if (result && !(result == now)) {
      result = simplify(result);
    } else {
      result = unique(foldable(now.node()) ? folded(now) : now);
    }
    simplified_[e] = result;
    simplified_[result] = result;
    keep_.push_back(e);
    return result;
  }

  Expr with_simple_inputs(const Expr& e) {
    const Node& node = e.node();
    std::vector<Expr> inputs;
    for (const Expr& input : node.inputs) inputs.push_back(simplify(input));
    return inputs == node.inputs ? e : Expr(make_node(*node.op, node.attrs, std::move(inputs), node.name));
  }

  static bool foldable(const Node& node) {
    constexpr std::int64_t kLargest = 1 << 16;  // elements: larger ones are computed again rather than stored
    if (node.op->leaf || node.op->random || node.inputs.empty() || node.outputs.size() != 1) return false;
    if (node.op->run == nullptr && node.op->block == nullptr && !node.op->view) return false;
    if (!node.outputs[0].shape.is_known() || node.outputs[0].shape.size() > kLargest) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [](const Expr& e) { return is_constant(e); });
  }

  static Expr folded(const Expr& e) {
    if (!e.op().view || !e.input(0).is<Fill>()) return constant_of(evaluate(e));
    return fill(e.shape(), e.input(0).attrs<Fill::Attrs>().value, e.dtype());
  }

  // The first node that computes the same from the same.
  Expr unique(const Expr& e) {
    const Node& node = e.node();
    if (node.op == &def_of<Placeholder>() || node.op == &def_of<VariableLeaf>()) return e;
    std::uint64_t h = attrs::mix(reinterpret_cast<std::uint64_t>(node.op), node.op->hash(node.attrs.get()));
    for (const Expr& input : node.inputs) h = attrs::mix(h, ExprHash{}(input));
    auto& same_hash = nodes_[h];
    for (const auto& other : same_hash)
      if (other->op == node.op && other->inputs == node.inputs && other->outputs == node.outputs &&
          node.op->equal(other->attrs.get(), node.attrs.get()))
        return Expr(other, e.output());
    same_hash.push_back(e.handle());
    return e;
  }

  const Bindings& bindings_;
  std::unordered_map<const Node*, Expr> branch_;
  std::unordered_map<Expr, Expr, ExprHash> done_, simplified_;
  std::unordered_map<std::uint64_t, std::vector<std::shared_ptr<const Node>>> nodes_;
  std::vector<Expr> keep_;  // addresses are keys: nothing may be freed and its address used again meanwhile
};

}  // namespace

std::vector<Expr> concretize(std::span<const Expr> roots, const Bindings& bindings) {
  return prune_loops(share_dense_rows(Concretizer(bindings).run(roots)));
}

}  // namespace syncline
