#include "runtime/concretize.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include "ops/control/branch.h"
#include "ops/control/loop.h"
#include "ops/control/sizes.h"
#include "ops/core.h"
#include "ops/core/fill.h"
#include "ops/dims.h"
#include "ops/leaf.h"
#include "ops/linalg/rows.h"
#include "ops/math.h"
#include "ops/op.h"
#include "ops/substitute.h"
#include "runtime/evaluate.h"
#include "runtime/half_precision.h"
#include "runtime/loop_graph.h"

namespace syncline {
namespace {

class Concretizer {
 public:
  Concretizer(const Bindings& bindings, bool saves_time) : saves_time_(saves_time), done_(bindings) {}

  // Empty if sizes are missing.
  std::vector<Expr> run(std::span<const Expr> roots) {
    missing_.clear();
    try {
      return rewritten(roots);
    } catch (const SizeIsMissing&) {
      return {};
    }
  }

  const std::vector<Expr>& missing_sizes() const { return missing_; }
  void set_missing_sizes(const SizeValues& values) {
    for (std::size_t i = 0; i < missing_.size(); ++i) sizes_[missing_[i]] = constant_of(values[i]);
  }

 private:
  using Nodes = std::vector<std::shared_ptr<const Node>>;

  // Thrown for a node that cannot be rewritten yet. The sizes are then among the missing ones.
  struct SizeIsMissing {};

  std::vector<Expr> rewritten(std::span<const Expr> roots) {
    for (const auto& node : live_nodes(roots)) rewrite(node);
    std::vector<Expr> result;
    for (const Expr& root : roots) result.push_back(of(root));
    return result;
  }

  // What a step can need, without the sides that known conditions rule out.
  Nodes live_nodes(std::span<const Expr> roots) const {
    Nodes found;
    std::unordered_set<const Node*> seen;
    auto visit = [&](const Expr& e) {
      if (seen.insert(&e.node()).second && !done_.contains(Expr(e.handle()))) found.push_back(e.handle());
    };
    for (const Expr& root : roots) visit(root);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto node = found[i];
      if (node->op == &def_of<Choose>() && is_known(node->inputs[2])) {
        visit(node->inputs[value_of(node->inputs[2]) ? 0 : 1]);
      } else if (node->op == &def_of<Branch>() && is_known(node->inputs[0])) {
        for (const std::size_t k : captures_of(*node, value_of(node->inputs[0]))) visit(node->inputs[k + 1]);
      } else {
        for (const Expr& input : node->inputs) visit(input);
      }
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a->id < b->id; });
    return found;
  }

  // Conditions that are fed or fixed; the plan knows them before it looks at anything else.
  Expr source_of(const Expr& condition) const {
    const Expr source = condition.is<Condition>() ? condition.input(0) : condition;
    const auto found = done_.find(source);
    return found == done_.end() ? source : found->second;
  }
  bool is_known(const Expr& condition) const {
    double value = 0;
    return scalar_value(source_of(condition), value);
  }
  bool value_of(const Expr& condition) const {
    double value = 0;
    scalar_value(source_of(condition), value);
    return value != 0;
  }

  // The numbers of the captured values that one side of a branch uses.
  static std::vector<std::size_t> captures_of(const Node& branch, bool side) {
    const BranchBodies& bodies = bodies_of(branch);
    std::unordered_set<const Node*> used;
    for (const auto& node : nodes_under(bodies.outputs(side))) used.insert(node.get());
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < bodies.captures.size(); ++i)
      if (used.contains(&bodies.captures[i].node())) numbers.push_back(i);
    return numbers;
  }

  static const BranchBodies& bodies_of(const Node& branch) {
    return *static_cast<const Branch::Attrs*>(branch.attrs.get())->bodies;
  }

  Expr of(const Expr& old) const {
    const auto found = done_.find(old);
    if (found != done_.end()) return found->second;
    SYNCLINE_CHECK(!missing_.empty());
    throw SizeIsMissing();
  }

  void rewrite(const std::shared_ptr<const Node>& node) {
    try {
      rewrite_now(node);
    } catch (const SizeIsMissing&) {  // the others go on: what else is missing is found in the same run
    }
  }

  void rewrite_now(const std::shared_ptr<const Node>& node) {
    const Expr old(node);
    if (node->op == &def_of<Choose>() && is_known(node->inputs[2])) {
      done_[old] = of(node->inputs[value_of(node->inputs[2]) ? 0 : 1]);
      return;
    }
    std::vector<Expr> outputs;
    if (node->op == &def_of<Branch>()) outputs = rewrite_branch(*node);
    else if (node->op == &def_of<Loop>()) outputs = concretize_loop(old, loop_inputs(*node), saves_time_);
    else outputs = rewrite_plain(node);
    for (std::size_t i = 0; i < outputs.size(); ++i) done_[Expr(node, static_cast<int>(i))] = outputs[i];
  }

  std::vector<Expr> inputs_of(const Node& node) const {
    std::vector<Expr> inputs;
    for (const Expr& input : node.inputs) inputs.push_back(of(input));
    return inputs;
  }

  // What is a size within the loop's body is a constant.
  std::vector<Expr> loop_inputs(const Node& loop) {
    std::vector<Expr> inputs = inputs_of(loop), sizes;
    for (const Expr& size : sizes_read_by(loop)) sizes.push_back(of(size));
    if (sizes.empty()) return inputs;
    const Bindings known = known_sizes(sizes);
    for (Expr& input : inputs)
      if (const auto found = known.find(input); found != known.end()) input = found->second;
    return inputs;
  }

  // The numbers that sizes are. Throws SizeIsMissing.
  Bindings known_sizes(std::span<const Expr> sizes) {
    Bindings known;
    bool all = true;
    for (const Expr& size : sizes) {
      const auto found = sizes_.find(size);
      if (is_constant(size) || found != sizes_.end()) {
        known[size] = is_constant(size) ? size : found->second;
        continue;
      }
      all = false;
      if (std::find(missing_.begin(), missing_.end(), size) == missing_.end()) missing_.push_back(size);
    }
    if (!all) throw SizeIsMissing();
    return known;
  }

  // The same stand-in with numbers among its inputs.
  Expr with_known_sizes(const Expr& e) {
    const std::span<const Expr> sizes = numbers_of(e.node());
    if (sizes.empty()) return e;
    const Bindings known = known_sizes(sizes);
    std::vector<Expr> inputs = e.node().inputs;
    for (std::size_t i = inputs.size() - sizes.size(); i < inputs.size(); ++i) inputs[i] = known.at(inputs[i]);
    return first_of_its_kind(Expr(make_node(e.op(), e.node().attrs, std::move(inputs), e.name())));
  }

  // What a stand-in stands for: the same nodes in each run.
  const Expr& expansion(const Expr& e) {
    const auto [found, fresh] = expansions_.try_emplace(e);
    if (fresh) found->second = e.op().simplify(e.node().attrs.get(), e.node().inputs, e.meta());
    return found->second;
  }

  std::vector<Expr> rewrite_plain(const std::shared_ptr<const Node>& node) {
    std::vector<Expr> inputs = inputs_of(*node);
    const bool same = inputs == node->inputs && std::all_of(node->outputs.begin(), node->outputs.end(),
                                                            [](const Meta& m) { return m.shape.is_known(); });
    const auto fresh = same ? node : make_node(*node->op, node->attrs, std::move(inputs), node->name);
    if (node->outputs.size() == 1) return {simplify(Expr(fresh))};
    const Expr kept = unique(computes_on_float16(*fresh) ? with_simple_inputs(on_float32(*fresh)) : Expr(fresh));
    std::vector<Expr> outputs;
    for (int i = 0; i < static_cast<int>(node->outputs.size()); ++i)
      outputs.push_back(simplify(cast(Expr(kept.handle(), i), node->outputs[static_cast<std::size_t>(i)].dtype)));
    return outputs;
  }

  // Both bodies become part of this graph, where a forward branch and its gradient meet again; or one, if the condition
  // is known.
  std::vector<Expr> rewrite_branch(const Node& branch) {
    if (is_known(branch.inputs[0])) return rewrite_side(branch, value_of(branch.inputs[0]));
    const Expr condition = of(branch.inputs[0]);
    const std::vector<Expr> x = rewrite_side(branch, true), alt = rewrite_side(branch, false);
    std::vector<Expr> outputs;
    for (std::size_t i = 0; i < x.size(); ++i) outputs.push_back(simplify(apply<Choose>({x[i], alt[i], condition})));
    return outputs;
  }

  std::vector<Expr> rewrite_side(const Node& branch, bool side) {
    const BranchBodies& bodies = bodies_of(branch);
    Bindings& body = sides_[{&branch, side}];
    for (const std::size_t k : captures_of(branch, side)) body[bodies.captures[k]] = of(branch.inputs[k + 1]);
    std::swap(done_, body);
    std::vector<Expr> outputs;
    try {
      outputs = rewritten(bodies.outputs(side));
    } catch (...) {
      std::swap(done_, body);
      throw;
    }
    std::swap(done_, body);
    return outputs;
  }

  // Applies the op's own rewrites until nothing changes. A rewrite may return several new nodes, whose inputs are
  // already simplified or new as well.
  Expr simplify(const Expr& e) {
    if (const auto known = simplified_.find(e); known != simplified_.end()) return known->second;
    if (e.node().outputs.size() > 1) return e;
    const Expr now = with_known_sizes(with_simple_inputs(e));
    const Node& node = now.node();
    Expr result;
    if (computes_on_float16(node)) result = cast(on_float32(node), now.dtype());
    else if (!numbers_of(node).empty()) result = expansion(now);
    else if (node.op->simplify != nullptr && (saves_time_ || !has_kernel(node)))
      result = node.op->simplify(node.attrs.get(), node.inputs, now.meta());
    if (result && !(result == now)) {
      check_rewrite(now, result);
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

  static bool has_kernel(const Node& node) {
    return node.op->run != nullptr || node.op->block != nullptr || node.op->view;
  }

  // Integers may be sizes, which a plan must know.
  bool foldable(const Node& node) const {
    if (!saves_time_ && is_floating(node.outputs[0].dtype)) return false;
    constexpr std::int64_t kLargest = 1 << 16;  // elements: larger ones are computed again rather than stored
    if (node.op->leaf || random_op_of(node) != nullptr || node.op->effect || node.inputs.empty() ||
        node.outputs.size() != 1)
      return false;
    if (!has_kernel(node)) return false;
    if (!node.outputs[0].shape.is_known() || node.outputs[0].shape.size() > kLargest) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [](const Expr& e) { return is_constant(e); });
  }

  static Expr folded(const Expr& e) {
    if (e.op().view && e.input(0).is<Fill>()) return fill(e.shape(), e.input(0).attrs<Fill::Attrs>().value, e.dtype());
    try {
      return constant_of(evaluate(e));
    } catch (const ValueError&) {
      // A step refuses it when it comes to it: it may be in the side of a branch that is not taken.
      if (e.op().may_refuse == nullptr) throw;
      return e;
    }
  }

  // The first node that computes the same from the same.
  Expr unique(const Expr& e) {
    const Node& node = e.node();
    const bool leaf = node.op == &def_of<Placeholder>() || node.op == &def_of<VariableLeaf>();
    return !saves_time_ || leaf || node.op->effect ? e : first_of_its_kind(e);
  }

  Expr first_of_its_kind(const Expr& e) {
    const Node& node = e.node();
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

  bool saves_time_;
  std::vector<Expr> missing_;                               // sizes, in terms of the new graph
  Bindings sizes_;                                          // those that have been computed
  Bindings expansions_;                                     // of stand-ins
  std::map<std::pair<const Node*, bool>, Bindings> sides_;  // what has been done of the bodies of branches
  Bindings done_;  // of the graph, or of the body of a branch, that is being rewritten
  std::unordered_map<Expr, Expr, ExprHash> simplified_;
  std::unordered_map<std::uint64_t, std::vector<std::shared_ptr<const Node>>> nodes_;
  std::vector<Expr> keep_;  // addresses are keys: nothing may be freed and its address used again meanwhile
};

}  // namespace

namespace {

std::vector<Expr> finished(const std::vector<Expr>& roots, bool simplify) {
  return prune_loops(simplify ? share_dense_rows(roots) : roots);
}

}  // namespace

Concrete concretize(std::span<const Expr> roots, const Bindings& bindings, bool simplify,
                    std::span<const SizeValues> known) {
  Concretizer concretizer(bindings, simplify);
  std::vector<Expr> concrete = concretizer.run(roots);
  for (const SizeValues& values : known) {
    concretizer.set_missing_sizes(values);
    concrete = concretizer.run(roots);
  }
  SYNCLINE_CHECK(known.size() < 100);  // each run finds other sizes
  if (concretizer.missing_sizes().empty()) return {finished(concrete, simplify), {}};
  return {{}, finished(concretizer.missing_sizes(), simplify)};
}

std::vector<Expr> concretize(std::span<const Expr> roots, const Bindings& bindings, bool simplify) {
  Concrete concrete = concretize(roots, bindings, simplify, {});
  for (const Expr& size : concrete.sizes)
    fail<ValueError>("a size is computed, by ", size.op().name,
                     ", from values that change within a loop or that only a ",
                     "step knows; compute it outside of the loop, or from shapes");
  return std::move(concrete.roots);
}

}  // namespace syncline
