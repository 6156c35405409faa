#include "runtime/graph/concretize.h"

#include <algorithm>
#include <map>

#include "ops/control/branch.h"
#include "ops/control/loop.h"
#include "ops/control/sizes.h"
#include "ops/graph/deferred.h"
#include "ops/graph/fill.h"
#include "ops/graph/leaf.h"
#include "ops/graph/op.h"
#include "ops/graph/substitute.h"
#include "ops/graph/value_map.h"
#include "runtime/graph/evaluate.h"
#include "runtime/graph/half_precision.h"
#include "runtime/graph/known_sizes.h"
#include "runtime/graph/loop_graph.h"
#include "runtime/graph/share_dense_rows.h"
#include "runtime/graph/share_sums.h"
#include "runtime/graph/unroll_loop.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

class Concretizer {
 public:
  Concretizer(const Bindings& bindings, bool saves_time) : saves_time_(saves_time) {
    for (const auto& [leaf, value] : bindings) root_.values[leaf] = value;
  }

  // Returns nothing if sizes are missing.
  std::vector<Expr> run(std::span<const Expr> roots) {
    try {
      for (const auto& node : live_nodes(roots)) rewrite(node);
      std::vector<Expr> result;
      for (const Expr& root : roots) result.push_back(of(root));
      return result;
    } catch (const SizeIsMissing&) {
      return {};
    }
  }

  KnownSizes& sizes() { return sizes_; }

 private:
  using Nodes = std::vector<std::shared_ptr<const Node>>;

  // Results so far. An empty value is unknown.
  struct Done {
    ValueMap<Expr> values;
    ValueMap<IterationValue> residuals;  // of unrolled loops
    // One for each side of a branch and each iteration of an unrolled loop.
    std::map<std::pair<const Node*, std::int64_t>, Done> bodies;
  };

  // The nodes that a step may need. Excludes the sides of branches that known conditions rule out.
  Nodes live_nodes(std::span<const Expr> roots) const {
    Nodes found;
    ValueSet seen;
    auto visit = [&](const Expr& e) {
      if (seen.insert(e.node()) && !is_done(e.handle())) found.push_back(e.handle());
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

  // True also for leaves whose value is unknown.
  bool is_done(const std::shared_ptr<const Node>& node) const {
    for (int i = 0; i < static_cast<int>(node->outputs.size()); ++i) {
      if (done_->values.contains(Expr(node, i))) continue;
      const IterationValue* residual = done_->residuals.find(Expr(node, i));
      if (residual == nullptr || !(node->op->leaf || residual->is_known())) return false;
    }
    return true;
  }

  // The condition's replacement. A fed or constant condition is known before any node is rewritten.
  Expr source_of(const Expr& condition) const {
    const Expr source = condition.is<Condition>() ? condition.input(0) : condition;
    const Expr* found = done_->values.find(source);
    return found == nullptr || !*found ? source : *found;
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

  // The indices of the captures that one side of a branch uses.
  static std::vector<std::size_t> captures_of(const Node& branch, bool side) {
    const BranchBodies& bodies = bodies_of(branch);
    ValueSet used;
    for (const auto& node : nodes_under(bodies.outputs(side))) used.insert(*node);
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < bodies.captures.size(); ++i)
      if (used.contains(bodies.captures[i].node())) numbers.push_back(i);
    return numbers;
  }

  static const BranchBodies& bodies_of(const Node& branch) {
    return *static_cast<const Branch::Attrs*>(branch.attrs.get())->bodies;
  }

  Expr of(const Expr& old) {
    if (const Expr* found = done_->values.find(old); found != nullptr && *found) return *found;
    if (const IterationValue* known = done_->residuals.find(old); known != nullptr && known->is_known())
      return done_->values[old] = simplify(known->stacked());
    SYNCLINE_CHECK(!sizes_.missing().empty());
    throw SizeIsMissing();
  }

  void rewrite(const std::shared_ptr<const Node>& node) {
    try {
      rewrite_now(node);
    } catch (const SizeIsMissing&) {  // continue, to find all missing sizes in one run
    }
  }

  void rewrite_now(const std::shared_ptr<const Node>& node) {
    const Expr old(node);
    if (node->op == &def_of<Choose>() && is_known(node->inputs[2])) {
      done_->values[old] = of(node->inputs[value_of(node->inputs[2]) ? 0 : 1]);
      return;
    }
    std::vector<Expr> outputs;
    if (node->op == &def_of<Branch>()) outputs = rewrite_branch(*node);
    else if (node->op == &def_of<Loop>()) outputs = rewrite_loop(old);
    else outputs = rewrite_plain(node);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i]) done_->values[Expr(node, static_cast<int>(i))] = outputs[i];
  }

  std::vector<Expr> inputs_of(const Node& node) {
    std::vector<Expr> inputs = node.inputs;
    for (Expr& input : inputs) input = of(input);
    return inputs;
  }

  std::vector<Expr> rewrite_loop(const Expr& loop) {
    const LoopBody& body = *loop.attrs<Loop::Attrs>().body;
    const std::vector<Expr>& inputs = loop.node().inputs;
    const auto first = static_cast<std::ptrdiff_t>(body.elements.size());
    // Only an unrolled loop can read residuals that differ in shape.
    const auto is_residual = [&](const Expr& e) { return done_->residuals.contains(e); };
    if (std::none_of(inputs.begin(), inputs.begin() + first, is_residual))
      if (const auto outputs = concretize_loop(loop, loop_inputs(loop.node()), saves_time_)) return *outputs;
    UnrolledInputs given;
    given.outputs = [&] {
      std::vector<Meta> metas;
      for (const Expr& input : inputs) metas.push_back(of(input).meta());
      return Loop::infer(loop.attrs<Loop::Attrs>(), metas);
    };
    given.iterations =
        is_residual(inputs[0]) ? std::ssize(done_->residuals.at(inputs[0]).iterations) : of(inputs[0]).shape()[0];
    given.element = [&](std::size_t i, std::int64_t t) {
      if (const IterationValue* residual = done_->residuals.find(inputs[i]))
        return residual->iterations[static_cast<std::size_t>(t)];
      return IterationValue{simplify(squeeze(slice_axis(of(inputs[i]), 0, t, 1), 0))};
    };
    for (std::size_t i = body.elements.size(); i < inputs.size(); ++i)
      (i < body.elements.size() + body.states.size() ? given.initial_states : given.captures).push_back(of(inputs[i]));
    const Unrolled unrolled = unroll_loop(loop, given, [&](std::int64_t t, const LeafValues& leaves) {
      Done& done = done_->bodies[{&loop.node(), t}];
      for (const auto& [leaf, value] : leaves) {
        if (!value.iterations.empty()) done.residuals[leaf] = value;
        else if (Expr& known = done.values[leaf]; !known) known = value.whole;
      }
      return rewrite_body(done, body.roots());
    });
    std::vector<Expr> outputs = unrolled.states;
    for (const IterationValue& value : unrolled.residuals) {
      if (!value.iterations.empty()) done_->residuals[Expr(loop.handle(), static_cast<int>(outputs.size()))] = value;
      outputs.push_back(value.whole);
    }
    for (Expr& e : outputs)
      if (e) e = simplify(e);
    return outputs;
  }

  // A value is empty where a size is missing.
  std::vector<IterationValue> rewrite_body(Done& done, const std::vector<Expr>& roots) {
    Done* const outer = std::exchange(done_, &done);
    for (const auto& node : live_nodes(roots)) rewrite(node);
    std::vector<IterationValue> result;
    for (const Expr& root : roots) {
      if (const Expr* whole = done.values.find(root)) result.push_back({*whole});
      else if (const IterationValue* residual = done.residuals.find(root)) result.push_back(*residual);
      else result.emplace_back();
    }
    done_ = outer;
    return result;
  }

  // The loop's inputs. Sizes that the body reads become constants.
  std::vector<Expr> loop_inputs(const Node& loop) {
    std::vector<Expr> inputs = inputs_of(loop), sizes;
    for (const Expr& size : sizes_read_by(loop)) sizes.push_back(of(size));
    if (sizes.empty()) return inputs;
    const Bindings known = sizes_.of(sizes);
    for (Expr& input : inputs)
      if (const auto found = known.find(input); found != known.end()) input = found->second;
    return inputs;
  }

  // Replaces the sizes among a deferred expression's inputs by constants.
  Expr with_known_sizes(const Expr& e) {
    if (!is_deferred(e.node())) return e;
    const std::span<const Expr> sizes = numbers_of(e.node());
    const Bindings known = sizes_.of(sizes);
    std::vector<Expr> inputs = e.node().inputs;
    for (Expr& input : std::span(inputs).last(sizes.size())) input = known.at(input);
    return first_of_its_kind(Expr(make_node(e.op(), e.node().attrs, std::move(inputs), e.name())));
  }

  // The expansion of a deferred expression. Cached, so that repeated runs give the same nodes.
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

  // Inlines both sides, or the taken one if the condition is known, so that a forward branch and its gradient share
  // nodes.
  std::vector<Expr> rewrite_branch(const Node& branch) {
    if (is_known(branch.inputs[0])) return rewrite_side(branch, value_of(branch.inputs[0]));
    const Expr condition = of(branch.inputs[0]);
    if (const auto decided = sizes_.value_of(condition)) return rewrite_side(branch, *decided);
    const std::size_t missing = sizes_.missing().size();
    try {
      const std::vector<Expr> x = rewrite_side(branch, true), alt = rewrite_side(branch, false);
      std::vector<Expr> outputs;
      for (std::size_t i = 0; i < x.size(); ++i) outputs.push_back(simplify(apply<Choose>({x[i], alt[i], condition})));
      return outputs;
    } catch (const SizeIsMissing&) {
      // Sizes may be valid only in the taken side: compute the condition first.
      sizes_.forget_from(missing);
      sizes_.of({&condition, 1});
      throw;
    }
  }

  std::vector<Expr> rewrite_side(const Node& branch, bool side) {
    const BranchBodies& bodies = bodies_of(branch);
    Done& done = done_->bodies[{&branch, side}];
    for (const std::size_t k : captures_of(branch, side)) done.values[bodies.captures[k]] = of(branch.inputs[k + 1]);
    std::vector<Expr> outputs;
    for (const IterationValue& value : rewrite_body(done, bodies.outputs(side))) {
      if (!value.is_known()) throw SizeIsMissing();
      outputs.push_back(simplify(value.stacked()));
    }
    return outputs;
  }

  // Applies the op's rewrites until nothing changes. A rewrite may return several new nodes; their inputs are new or
  // already simplified.
  Expr simplify(const Expr& e) {
    if (const Expr* known = simplified_.find(e)) return *known;
    if (e.node().outputs.size() > 1) return e;
    const Expr now = with_known_sizes(with_simple_inputs(e));
    const Node& node = now.node();
    Expr result;
    if (computes_on_float16(node)) result = cast(on_float32(node), now.dtype());
    else if (is_deferred(node)) result = expansion(now);
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
    return result;
  }

  Expr with_simple_inputs(const Expr& e) {
    const Node& node = e.node();
    if (std::ranges::all_of(node.inputs, [&](const Expr& input) { return simplify(input) == input; })) return e;
    std::vector<Expr> inputs = node.inputs;
    for (Expr& input : inputs) input = simplify(input);
    return Expr(make_node(*node.op, node.attrs, std::move(inputs), node.name));
  }

  static bool has_kernel(const Node& n) { return n.op->run != nullptr || n.op->block != nullptr || n.op->view; }

  // Integers are always folded, because they may be sizes.
  bool foldable(const Node& node) const {
    if (!saves_time_ && is_floating(node.outputs[0].dtype)) return false;
    constexpr std::int64_t kLargest = 1 << 16;  // elements; larger values are recomputed to save memory
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
      // Leave the error to the step: this node may be in a side that is not taken.
      if (e.op().may_throw == nullptr) throw;
      return e;
    }
  }

  // The first node with equal op, attributes and inputs.
  Expr unique(const Expr& e) {
    const Node& node = e.node();
    const bool leaf = node.op == &def_of<Placeholder>() || node.op == &def_of<VariableLeaf>();
    return !saves_time_ || leaf || node.op->effect ? e : first_of_its_kind(e);
  }

  Expr first_of_its_kind(const Expr& e) {
    const Node& node = e.node();
    std::uint64_t h = attrs::mix(reinterpret_cast<std::uint64_t>(node.op), node.op->hash(node.attrs.get()));
    for (const Expr& input : node.inputs) h = attrs::mix(h, ExprHash{}(input));
    for (auto [it, end] = nodes_.equal_range(h); it != end; ++it) {
      const Node& other = *it->second;
      if (other.op == node.op && other.inputs == node.inputs && other.outputs == node.outputs &&
          node.op->equal(other.attrs.get(), node.attrs.get()))
        return Expr(it->second, e.output());
    }
    nodes_.emplace(h, e.handle());
    return e;
  }

  bool saves_time_;
  KnownSizes sizes_;
  Bindings expansions_;  // of deferred expressions
  Done root_;
  Done* done_ = &root_;  // for the graph or body that is being rewritten
  ValueMap<Expr> simplified_;
  std::unordered_multimap<std::uint64_t, std::shared_ptr<const Node>> nodes_;  // by hash
};

std::vector<Expr> finished(const std::vector<Expr>& roots, bool simplify) {
  return prune_loops(simplify ? share_sums(share_dense_rows(roots)) : roots);
}

}  // namespace

Concrete concretize(std::span<const Expr> roots, const Bindings& bindings, bool simplify,
                    std::span<const SizeValues> known) {
  Concretizer concretizer(bindings, simplify);
  std::vector<Expr> concrete = concretizer.run(roots);
  for (const SizeValues& values : known) {
    concretizer.sizes().set_missing(values);
    concrete = concretizer.run(roots);
  }
  constexpr std::size_t kMostRuns = 32;  // run k repeats runs 1 to k - 1
  if (known.size() > kMostRuns)
    fail<ValueError>("more than ", kMostRuns, " sizes depend on one another; compute them from fewer others");
  if (concretizer.sizes().missing().empty()) return {finished(concrete, simplify), {}};
  return {{}, finished(concretizer.sizes().missing(), simplify)};
}

std::vector<Expr> concretize(std::span<const Expr> roots, const Bindings& bindings, bool simplify) {
  Concrete concrete = concretize(roots, bindings, simplify, {});
  for (const Expr& size : concrete.sizes)
    fail<ValueError>("the op ", size.op().name, " computes a size from values that are known only when a step runs");
  return std::move(concrete.roots);
}

}  // namespace syncline
