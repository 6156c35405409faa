#include "ops/control/loop.h"

#include <algorithm>

#include "ops/control/body.h"
#include "ops/graph/leaf.h"

namespace syncline {
namespace {

SYNCLINE_REGISTER_OP(Loop)

Shape of_one_iteration(Shape whole) {
  whole.erase(0);
  return whole;
}

Shape of_all_iterations(Shape one, std::int64_t time) {
  one.insert(0, time);
  return one;
}

// The placeholders of the body, in the order of the inputs of the loop.
std::vector<Expr> leaves_of(const LoopBody& body) {
  std::vector<Expr> leaves = body.elements;
  leaves.insert(leaves.end(), body.states.begin(), body.states.end());
  leaves.insert(leaves.end(), body.captures.begin(), body.captures.end());
  return leaves;
}

std::int64_t common_time(const LoopBody& body, std::span<const Meta> in) {
  std::int64_t time = kUnknown;
  for (std::size_t i = 0; i < body.elements.size(); ++i) {
    const Shape& shape = in[i].shape;
    if (shape.ndim() == 0) fail<ShapeError>(Loop::kName, ": sequence ", i, " is a scalar; its first axis must be time");
    if (time >= 0 && shape[0] >= 0 && shape[0] != time)
      fail<ShapeError>(Loop::kName, ": sequences have ", time, " and ", shape[0],
                       " elements; they must have the same length");
    time = std::max(time, shape[0]);
  }
  return time;
}

// Merges the metas of a state before and after an iteration, which must agree. Either may supply a dimension that the
// other lacks.
Meta merge_state(std::size_t i, const Meta& now, const Meta& next) {
  bool fits = now.dtype == next.dtype && now.shape.ndim() == next.shape.ndim();
  Meta merged = now;
  for (int axis = 0; fits && axis < now.shape.ndim(); ++axis) {
    fits = now.shape[axis] < 0 || next.shape[axis] < 0 || now.shape[axis] == next.shape[axis];
    merged.shape[axis] = std::max(now.shape[axis], next.shape[axis]);
  }
  if (!fits)
    fail<ShapeError>(Loop::kName, ": state ", i, " begins as ", now, ", but one iteration makes it ", next,
                     "; a state must keep its dtype and shape");
  return merged;
}

// Infers the metas of all values of a body from the metas `in` of the loop inputs.
BodyMetas infer_body(const LoopBody& body, std::span<const Meta> in) {
  const std::vector<Expr> leaves = leaves_of(body);
  if (in.size() != leaves.size())
    fail<ValueError>(Loop::kName, ": ", in.size(), " inputs are given for a body of ", body.elements.size(),
                     " sequences, ", body.states.size(), " states and ", body.captures.size(), " captured values");
  std::vector<Meta> metas(in.begin(), in.end());
  for (std::size_t i = 0; i < body.elements.size(); ++i) metas[i].shape = of_one_iteration(metas[i].shape);
  return infer_under(Loop::kName, body.roots(), leaves, metas);
}

// Propagates placements through a body, given the placements of the loop inputs.
class BodyPlacer {
 public:
  BodyPlacer(const LoopBody& body, const PlaceArgs& args)
      : args_(args), leaves_(leaves_of(body)), metas_(infer_body(body, args.in)) {
    nodes_ = nodes_under(body.roots());
  }

  void propagate(std::span<const Placement> of_leaves) {
    at_.clear();
    for (std::size_t i = 0; i < leaves_.size(); ++i) set(leaves_[i], of_leaves[i]);
    for (const auto& node : nodes_)
      if (!node->inputs.empty()) place(node);
  }

  Placement at(const Expr& e) const {
    const auto found = at_.find(e);
    return found == at_.end() ? Placement::replicated() : found->second;
  }

 private:
  void set(const Expr& e, Placement p) {
    const bool reduced = p.is_extreme() || (p.is_partial() && args_.by_parts);  // within the iteration
    if (!p.is_replicated() && !reduced) at_[e] = p;
  }

  void place(const std::shared_ptr<const Node>& node) {
    std::vector<Meta> in;
    std::vector<Placement> at_inputs;
    for (const Expr& input : node->inputs) {
      in.push_back(meta_of(metas_, input));
      at_inputs.push_back(at(input));
    }
    if (std::all_of(at_inputs.begin(), at_inputs.end(), [](Placement p) { return p.is_replicated(); })) return;
    const Placed placed = node->op->place(
        node->attrs.get(),
        {.in = in, .out = metas_.at(node.get()), .at = at_inputs, .rows = args_.rows, .by_parts = args_.by_parts});
    for (std::size_t i = 0; i < placed.out.size(); ++i) set(Expr(node, static_cast<int>(i)), placed.out[i]);
  }

  const PlaceArgs& args_;
  std::vector<Expr> leaves_;
  BodyMetas metas_;
  std::vector<std::shared_ptr<const Node>> nodes_;
  std::unordered_map<Expr, Placement, ExprHash> at_;
};

Placement whole_if_partial(Placement p) { return p.is_partial() ? Placement::replicated() : p; }

// Iterations that depend on each other run in order, so time must not be split.
Placement of_sequence(Placement p) { return p.is_split() && p.axis > 0 ? p : Placement::replicated(); }

// Independent iterations are distributed like rows of a batch if a sequence is split along time. A body with effects
// stays whole, so that prints keep their order.
bool shares_iterations(const LoopBody& body, std::span<const Placement> at) {
  const auto sequences = at.first(body.elements.size());
  return body.states.empty() && !has_effect(body.roots()) &&
         std::any_of(sequences.begin(), sequences.end(), [](Placement p) { return p.is_split(0); });
}

// Each rank runs the iterations of its own rows, with whole values in each iteration.
Placed place_iterations(const LoopBody& body, const PlaceArgs& args) {
  Placed placed = gathered(args);
  for (std::size_t i = 0; i < body.elements.size(); ++i) placed.in[i] = Placement::split(0);
  for (std::size_t i = 0; i < body.residuals.size(); ++i)
    placed.out[i] = body.residuals[i].sum ? Placement::partial() : Placement::split(0);
  return placed;
}

// The placement of the loop output of a residual that has the placement `p` in the body.
Placement of_residual(Placement p, bool sum) { return p.is_split() && !sum ? Placement::split(p.axis + 1) : p; }

}  // namespace

std::vector<Expr> LoopBody::roots() const {
  std::vector<Expr> all = next_states;
  for (const Residual& r : residuals) all.push_back(r.value);
  return all;
}

std::string LoopBody::describe() const {
  BodyNames names;
  name_leaves(names, elements, "element");
  name_leaves(names, states, "state");
  name_leaves(names, captures, "capture");
  std::string text = (reverse ? "backwards {" : "{") + describe_nodes(names, roots());
  for (const Expr& next : next_states) text += " next " + name_of(names, next) + ';';
  for (const Residual& r : residuals) text += (r.sum ? " sum " : " stack ") + name_of(names, r.value) + ';';
  return text + " }";
}

std::vector<Meta> Loop::infer(const Attrs& a, std::span<const Meta> in) {
  const LoopBody& body = *a.body;
  if (body.elements.empty()) fail<ValueError>(kName, ": there is no sequence to iterate over; give at least one");
  if (in.size() < body.elements.size()) fail<ValueError>(kName, ": a sequence is missing");
  const std::int64_t time = common_time(body, in);
  const BodyMetas metas = infer_body(body, in);
  if (body.next_states.size() != body.states.size())
    fail<ValueError>(kName, ": the body has ", body.states.size(), " states, but returns ", body.next_states.size());
  std::vector<Meta> out;
  for (std::size_t i = 0; i < body.states.size(); ++i)
    out.push_back(merge_state(i, in[body.elements.size() + i], meta_of(metas, body.next_states[i])));
  for (const Residual& r : body.residuals) {
    Meta meta = meta_of(metas, r.value);
    if (!r.sum) meta.shape = of_all_iterations(meta.shape, time);
    out.push_back(std::move(meta));
  }
  return out;
}

// A state starts with the placement of its initial value. If an iteration splits a replicated state, the state is split
// from the start and each rank takes its rows of the initial value. A state with two conflicting splits is gathered in
// each iteration. Partial values are summed before they enter the loop or the next iteration. Residuals stay partial: a
// sum over iterations is all-reduced once, after the loop; with parts of the batch, in each iteration.
Placed Loop::place(const Attrs& a, const PlaceArgs& args) {
  const LoopBody& body = *a.body;
  const bool sums = std::any_of(body.residuals.begin(), body.residuals.end(), [](const auto& r) { return r.sum; });
  if (shares_iterations(body, args.at)) return sums && args.by_parts ? gathered(args) : place_iterations(body, args);
  const std::size_t n_elements = body.elements.size(), n_states = body.states.size();
  Placed placed;
  std::vector<Placement> leaves;
  for (std::size_t i = 0; i < args.at.size(); ++i) {
    placed.in.push_back(i < n_elements ? of_sequence(args.at[i]) : whole_if_partial(args.at[i]));
    const Placement p = placed.in.back();
    leaves.push_back(i < n_elements && p.is_split() ? Placement::split(p.axis - 1) : p);
  }
  BodyPlacer body_placer(body, args);
  std::vector<bool> gathered_state(n_states, false);
  for (bool changed = true; changed;) {
    changed = false;
    body_placer.propagate(leaves);
    for (std::size_t i = 0; i < n_states; ++i) {
      const Placement next = body_placer.at(body.next_states[i]);
      Placement& now = leaves[n_elements + i];
      if (gathered_state[i] || !next.is_split() || next == now) continue;
      gathered_state[i] = now.is_split();
      now = now.is_split() ? Placement::replicated() : next;
      changed = true;
    }
  }
  for (std::size_t i = 0; i < n_states; ++i) {
    placed.in[n_elements + i] = leaves[n_elements + i];
    placed.out.push_back(leaves[n_elements + i]);
  }
  for (const Residual& r : body.residuals) placed.out.push_back(of_residual(body_placer.at(r.value), r.sum));
  return placed;
}

Expr residual(const Expr& loop, const Expr& value, bool sum) {
  LoopBody& body = *loop.attrs<Loop::Attrs>().body;
  const auto n_states = body.states.size();
  for (std::size_t i = 0; i < body.residuals.size(); ++i)
    if (body.residuals[i].value == value && body.residuals[i].sum == sum)
      return Expr(loop.handle(), static_cast<int>(n_states + i));
  std::vector<Meta> in;
  for (const Expr& input : loop.node().inputs) in.push_back(input.meta());
  body.residuals.push_back({value, sum});
  loop.node().outputs = Loop::infer(loop.attrs<Loop::Attrs>(), in);
  return Expr(loop.handle(), static_cast<int>(n_states + body.residuals.size()) - 1);
}

}  // namespace syncline
