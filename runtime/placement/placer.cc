#include "runtime/placement/placer.h"

#include <algorithm>

#include "ops/graph/fill.h"
#include "ops/graph/leaf.h"
#include "ops/graph/op.h"
#include "runtime/placement/collectives.h"
#include "runtime/placement/variable_rows.h"
#include "syncline/backend/shape.h"
#include "syncline/backend/variable.h"

namespace syncline {
namespace {

Placed ask_op(const Node& node, const std::vector<Placement>& at, std::int64_t rows, bool by_parts = false) {
  std::vector<Meta> metas;
  for (const Expr& input : node.inputs) metas.push_back(input.meta());
  return node.op->place(node.attrs.get(), {metas, node.outputs, at, rows, by_parts});
}

// The inputs that can stay partial when the node's value is partial: the node is linear in all inputs together, or in
// one of them with the others replicated.
std::vector<Expr> inputs_kept(const Node& node, std::int64_t rows) {
  const std::size_t inputs = node.inputs.size();
  const auto gives_partial = [&](const std::vector<Placement>& at) {
    return ask_op(node, at, rows).out[0].is_partial();
  };
  if (gives_partial(std::vector<Placement>(inputs, Placement::partial()))) return node.inputs;
  std::vector<Expr> kept;
  for (std::size_t i = 0; i < inputs; ++i) {
    std::vector<Placement> one(inputs);
    one[i] = Placement::partial();
    if (gives_partial(one)) kept.push_back(node.inputs[i]);
  }
  return kept;
}

// The values that reach a root wanted partial through linear nodes only. No transfer is inserted on these paths.
ValueSet values_kept(std::span<const Expr> roots, std::span<const Placement> wanted, std::int64_t rows) {
  ValueSet kept;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i].is_partial()) kept.insert(roots[i]);
  if (kept.empty()) return kept;
  const auto nodes = nodes_under(roots);
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it)
    if ((*it)->outputs.size() == 1 && !(*it)->inputs.empty() && kept.contains(Expr(*it)))
      for (const Expr& input : inputs_kept(**it, rows)) kept.insert(input);
  return kept;
}

// Walks a graph once, asks each op for its placement rule and inserts conversions between placements. All-reduces a
// value in `early` directly after it is computed. For a value in `kept`, converts replicated operands to partial.
// Computes a value in `rows` for the rows that this rank owns.
class Placer {
 public:
  Placer(const PlacementMap& leaves, const RowShares& shares, const ValueSet& kept, const RowValues& rows,
         const ValueSet& early, const PlacementLimits& limits, bool by_parts)
      : leaves_(leaves),
        shares_(shares),
        kept_(kept),
        row_values_(rows),
        early_(early),
        limits_(limits),
        by_parts_(by_parts) {}

  PlacedGraph run(std::span<const Expr> roots, std::span<const Placement> wanted) {
    for (const auto& node : nodes_under(roots)) runs_on_rows(*node) ? place_rows(node) : place(node);
    PlacedGraph graph;
    for (std::size_t i = 0; i < roots.size(); ++i) {
      const Placement at = wanted.empty() ? Placement::replicated() : wanted[i];
      const Expr root = at.is_by_rows_of_variable() ? new_rows(roots[i]) : convert(done_.at(roots[i]), at);
      graph.roots.push_back(at == Placement::gathered_rows() ? apply<AllGather>({root}) : root);
    }
    graph.placement = placement_;
    return graph;
  }

  // For each value that was reduced, adds the value to reduce early instead: the first partial value on the chain of
  // linear ops to it that is not larger. Then all users share one sum, and the nodes behind it can be one fused pass.
  // Returns true if `early` has grown.
  bool add_wanted_whole(ValueSet& early) const {
    bool grown = false;
    for (Expr value : summed_) {
      for (Expr operand = partial_operand(value); operand; operand = partial_operand(value)) {
        if (is_scattered(value) && !is_scattered(operand)) break;
        value = operand;
      }
      if (!kept_.contains(value)) grown = early.insert(value) || grown;
    }
    return grown;
  }

 private:
  Expr partial_operand(const Expr& value) const {
    Expr found;
    for (const Expr& input : value.node().inputs) {
      if (!at(done_.at(input)).is_partial() || input == found) continue;
      if (found || bytes(input) > bytes(value)) return {};
      found = input;
    }
    return kept_.contains(found) ? Expr{} : found;
  }

  static std::int64_t bytes(const Expr& e) { return e.shape().size() * static_cast<std::int64_t>(size_of(e.dtype())); }

  Placement at(const Expr& e) const { return placement_.value_or(e, Placement::replicated()); }

  void set(const Expr& e, Placement p) {
    if (!p.is_replicated()) placement_[e] = p;
  }

  void place(const std::shared_ptr<const Node>& node) {
    std::vector<Expr> inputs;
    std::vector<Placement> placements;
    bool all_replicated = true;
    for (const Expr& input : node->inputs) {
      inputs.push_back(done_.at(input));
      placements.push_back(at(inputs.back()));
      all_replicated = all_replicated && placements.back().is_replicated();
    }
    Placed placed;
    if (node->inputs.empty() && is_split(Expr(node))) {
      done_[Expr(node)] = gathered_variable(Expr(node));
      return;
    }
    if (node->inputs.empty()) {
      placed.out = {of_leaf(Expr(node))};
    } else if (all_replicated) {
      placed.out.assign(node->outputs.size(), Placement::replicated());
    } else {
      placed = ask(node, placements);
      SYNCLINE_CHECK(placed.in.size() == inputs.size() && placed.out.size() == node->outputs.size());
      for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = convert(inputs[i], placed.in[i]);
    }
    const auto fresh = inputs == node->inputs ? node : make_node(*node->op, node->attrs, inputs, node->name);
    for (int i = 0; i < static_cast<int>(node->outputs.size()); ++i) {
      const Expr old(node, i), now(fresh, i);
      set(now, placed.out[static_cast<std::size_t>(i)]);
      old_[now] = old;
      const bool at_once = at(now).is_extreme() || (at(now).is_partial() && (by_parts_ || early_.contains(old)));
      done_[old] = !at_once ? now : needs_own_rows(old, now) ? own_rows_of_sum(now) : whole(now, at(now));
    }
  }

  // False if the value can stay partial: terms are added before their sum is reduced.
  bool runs_on_rows(const Node& node) const {
    if (node.outputs.size() != 1 || !row_values_.computed.contains(node)) return false;
    std::vector<Placement> placements;
    for (const Expr& input : node.inputs) placements.push_back(at(done_.at(input)));
    return !ask_op(node, placements, shares_.total()).out[0].is_partial();
  }

  bool has_rows(const Expr& old) const { return at(done_.at(old)) == shares_.of_variables(); }

  void place_rows(const std::shared_ptr<const Node>& node) {
    const Shape& shape = node->outputs[0].shape;
    std::vector<Expr> inputs;
    for (const Expr& input : node->inputs) {
      if (input.shape() == shape) {
        inputs.push_back(rows(input));
        continue;
      }
      Expr whole = convert(done_.at(input), Placement::replicated());
      if (const int most = shape.ndim() - row_axes(shape); whole.ndim() > most)
        whole = reshape(whole, Shape(std::span(whole.shape().end() - most, whole.shape().end())));
      inputs.push_back(whole);
    }
    const Expr now(make_node(*node->op, node->attrs, inputs, node->name));
    set(now, shares_.of_variables());
    old_[now] = Expr(node);
    done_[Expr(node)] = now;
  }

  // The rows of a value that this rank owns, for a value of the old graph.
  Expr rows(const Expr& old) {
    if (has_rows(old)) return done_.at(old);
    Expr& rows = rows_[old];
    if (rows) return rows;
    const Expr& now = done_.at(old);
    return rows = needs_own_rows(old, now) ? own_rows_of_sum(now) : rows_of_whole(now);
  }

  // Gathered rows that have equal parts need no gather.
  Expr rows_of_whole(const Expr& e) {
    const Placement wanted = shares_.of_variables();
    const Expr whole = convert(e, Placement::replicated());
    const Shape shape = rows_of(e.shape());
    if (whole.is<AllGather>() && at(whole.input(0)) == wanted && whole.shape() == shape) return whole.input(0);
    return own_rows(whole.shape() == shape ? whole : reshape(whole, shape), wanted);
  }

  // True for a value whose sum is scattered, because each rank needs its own rows only. Small sums stay whole: they
  // share a bucket. If each node has all rows, the nodes need the whole sum.
  bool is_scattered(const Expr& old) const {
    return row_values_.wanted.contains(old) && bytes(old) >= limits_.scatter_from &&
           shares_.of_variables().rows == Placement::kEvenly;
  }
  bool needs_own_rows(const Expr& old, const Expr& now) const { return at(now).is_partial() && is_scattered(old); }

  Expr own_rows_of_sum(const Expr& e) {
    summed_.push_back(old_.at(e));
    if (const Expr computed = computed_by_rows(e)) return rows_of_whole(computed);
    const Shape shape = rows_of(e.shape());
    const Expr terms = e.shape() == shape ? e : reshape(e, shape);
    set(terms, Placement::partial());
    const Expr sum = apply<ReduceScatter>({terms});
    set(sum, shares_.of_variables());
    return sum;
  }

  // The rows of a variable's new value. Each variable has a value of its own, which a program computes in its memory.
  Expr new_rows(const Expr& old) {
    if (has_rows(old) && done_.at(old).op().block != nullptr && assigned_.insert(old)) return done_.at(old);
    const Expr copied = apply<Copy>({rows(old)});
    set(copied, shares_.of_variables());
    return copied;
  }

  static bool is_split(const Expr& leaf) {
    if (!leaf.is<VariableLeaf>()) return false;
    const VariableState::Shared* shared = leaf.attrs<VariableLeaf::Attrs>().state->shared();
    return shared != nullptr && shared->split;
  }

  // A variable of which this rank has some rows. No task gathers it if all readers need these rows only.
  Expr gathered_variable(const Expr& leaf) {
    const Shape shape = rows_of(leaf.shape());
    rows_[leaf] = own_rows(leaf.shape() == shape ? leaf : reshape(leaf, shape), shares_.of_variables());
    const Expr whole = apply<AllGather>({rows_[leaf]});
    return leaf.shape() == shape ? whole : reshape(whole, leaf.shape());
  }

  Placement of_leaf(const Expr& leaf) const {
    if (!by_parts_ && leaf.is<VariableLeaf>() && leaf.attrs<VariableLeaf::Attrs>().state->partial())
      return Placement::partial();
    return leaves_.value_or(leaf, Placement::replicated());
  }

  Placed ask(const std::shared_ptr<const Node>& node, const std::vector<Placement>& at) const {
    Placed placed = ask_op(*node, at, shares_.total(), by_parts_);
    const auto is_partial = [](Placement p) { return p.is_partial(); };
    if (placed.out[0].is_partial() || std::none_of(at.begin(), at.end(), is_partial)) return placed;
    if (node->outputs.size() > 1 || !kept_.contains(Expr(node))) return placed;
    std::vector<Placement> parts = at;
    for (Placement& p : parts)
      if (p.is_replicated()) p = Placement::partial();
    Placed kept = ask_op(*node, parts, shares_.total());
    return kept.out[0].is_partial() ? kept : placed;
  }

  Expr convert(const Expr& e, Placement wanted) {
    const Placement now = at(e);
    if (now == wanted) return e;
    for (const auto& [placement, result] : converted_[e])
      if (placement == wanted) return result;
    const Expr result = wanted.is_split()     ? own_rows(convert(e, Placement::replicated()), wanted)
                        : wanted.is_partial() ? own_part(convert(e, Placement::replicated()))
                                              : whole(e, now);
    if (!(at(result) == wanted))
      fail<InternalError>("placement: ", e.op().name, " of shape ", e.shape(), " cannot be turned from ", now, " to ",
                          wanted);
    converted_[e].emplace_back(wanted, result);
    return result;
  }

  Expr own_rows(const Expr& e, Placement wanted) {
    const Expr rows = apply<OwnRows>({e}, {wanted.axis, shares_.own_begin(e.shape()[wanted.axis], wanted.rows)});
    set(rows, wanted);
    return rows;
  }

  // The value on rank 0, zeros on the others.
  Expr own_part(const Expr& e) {
    double value = 1;
    const bool zero = scalar_value(e, value) && value == 0;
    const Expr part = zero ? apply<Fill>({}, {0, e.dtype(), e.shape()}) : apply<OwnPart>({e}, {shares_.rank == 0});
    set(part, Placement::partial());
    return part;
  }

  Expr whole(const Expr& e, Placement now) {
    if (now.is_extreme()) return apply<AllReduce>({e}, {now.kind});
    if (now.is_partial()) {
      summed_.push_back(old_.at(e));
      const Expr rows = computed_by_rows(e);
      return rows ? convert(rows, Placement::replicated()) : apply<AllReduce>({e});
    }
    const Expr parts = apply<AllGather>({e});
    if (e.shape().product(0, now.axis) == 1) return parts;
    Interleave::Attrs attrs{now.axis, {}};
    for (int r = 0; r <= shares_.ranks(); ++r) attrs.begin.push_back(shares_.at(r, e.shape()[now.axis], now.rows));
    return apply<Interleave>({parts}, std::move(attrs));
  }

  // This rank's rows of a partial value, computed from gathered operands; empty if an all-reduce is better. Example:
  // the gradient of a dense layer's weight, a sum of outer products over the batch. Both ways take equally many
  // operations, but an all-reduce stores, reads and overwrites the whole term of each rank, while rows are stored and
  // moved once.
  Expr computed_by_rows(const Expr& e) {
    if (by_parts_ || e.ndim() == 0 || e.node().outputs.size() > 1 || bytes(e) < limits_.by_rows_from) return {};
    const std::vector<Expr>& inputs = e.node().inputs;
    constexpr std::int64_t kSmaller = 4;
    std::int64_t gathered = 0;
    for (const Expr& input : inputs) {
      if (at(input).is_partial()) return {};
      gathered += at(input).is_split() ? bytes(input) : 0;
    }
    if (gathered * kSmaller > bytes(e)) return {};
    for (std::size_t i = 0; i < inputs.size(); ++i)
      for (int axis = 0; axis < inputs[i].ndim(); ++axis) {
        std::vector<Placement> wanted(inputs.size());
        wanted[i] = Placement::split(axis);
        if (gives_rows(e.node(), wanted)) return with_inputs_at(e.node(), wanted);
      }
    return {};
  }

  bool gives_rows(const Node& node, const std::vector<Placement>& at) const {
    const Placed placed = ask_op(node, at, shares_.total());
    return placed.in == at && placed.out[0].is_split(0);
  }

  Expr with_inputs_at(const Node& node, const std::vector<Placement>& at) {
    std::vector<Expr> inputs;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const Placement evenly = Placement::split(at[i].axis, Placement::kEvenly);
      inputs.push_back(convert(node.inputs[i], at[i].is_split() ? evenly : at[i]));
    }
    const Expr rows(make_node(*node.op, node.attrs, inputs, node.name));
    set(rows, Placement::split(0, Placement::kEvenly));
    return rows;
  }

  const PlacementMap& leaves_;
  const RowShares& shares_;
  const ValueSet& kept_;
  const RowValues& row_values_;
  const ValueSet& early_;
  const PlacementLimits limits_;
  const bool by_parts_;  // sums partial values at once: scaled or added before, they would depend on the ranks
  PlacementMap placement_;
  ValueMap<Expr> done_, old_;  // from the old graph to the new one, and back
  ValueMap<Expr> rows_;        // of values of the old graph
  ValueSet assigned_;          // values of the old graph that a variable takes
  std::vector<Expr> summed_;   // nodes of the old graph
  ValueMap<std::vector<std::pair<Placement, Expr>>> converted_;
};

}  // namespace

PlacedGraph place_graph(std::span<const Expr> roots, const PlacementMap& leaves, const RowShares& shares,
                        std::span<const Placement> wanted, const PlacementLimits& limits, bool by_parts) {
  const ValueSet kept = values_kept(roots, wanted, shares.total());
  const RowValues rows = values_by_rows(roots, wanted);
  ValueSet early;
  while (true) {
    Placer placer(leaves, shares, kept, rows, early, limits, by_parts);
    PlacedGraph graph = placer.run(roots, wanted);
    if (!placer.add_wanted_whole(early)) return graph;
  }
}

}  // namespace syncline
