#include "ops/control/loop.h"

#include <algorithm>

#include "ops/leaf.h"

namespace syncline {
namespace {

SYNCLINE_REGISTER_OP(Loop)

using Metas = std::unordered_map<const Node*, std::vector<Meta>>;

Shape of_one_turn(Shape whole) {
  whole.erase(0);
  return whole;
}

Shape of_all_turns(Shape one, std::int64_t time) {
  one.insert(0, time);
  return one;
}

// What stands for the loop's inputs within the body, in their order.
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
      fail<ShapeError>(Loop::kName, ": sequences of ", time, " and ", shape[0], " elements; they must be equally long");
    time = std::max(time, shape[0]);
  }
  return time;
}

// A state keeps its dtype and shape. What one side does not know yet the other may.
Meta merge_state(std::size_t i, const Meta& now, const Meta& next) {
  bool fits = now.dtype == next.dtype && now.shape.ndim() == next.shape.ndim();
  Meta merged = now;
  for (int axis = 0; fits && axis < now.shape.ndim(); ++axis) {
    fits = now.shape[axis] < 0 || next.shape[axis] < 0 || now.shape[axis] == next.shape[axis];
    merged.shape[axis] = std::max(now.shape[axis], next.shape[axis]);
  }
  if (!fits)
    fail<ShapeError>(Loop::kName, ": state ", i, " begins as ", now, ", but one turn makes it ", next,
                     "; a state must keep its dtype and shape");
  return merged;
}

// A body's placements for given placements of the loop's inputs.
class BodyPlacer {
 public:
  BodyPlacer(const LoopBody& body, const PlaceArgs& args)
      : body_(body), args_(args), leaves_(leaves_of(body)), metas_(infer_body(body, args.in)) {
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
    if (!p.is_replicated()) at_[e] = p;
  }

  void place(const std::shared_ptr<const Node>& node) {
    std::vector<Meta> in;
    std::vector<Placement> at_inputs;
    for (const Expr& input : node->inputs) {
      in.push_back(metas_.at(&input.node())[static_cast<std::size_t>(input.output())]);
      at_inputs.push_back(at(input));
    }
    if (std::all_of(at_inputs.begin(), at_inputs.end(), [](Placement p) { return p.is_replicated(); })) return;
    const Placed placed = node->op->place(
        node->attrs.get(), {.in = in, .out = metas_.at(node.get()), .at = at_inputs, .rows = args_.rows});
    for (std::size_t i = 0; i < placed.out.size(); ++i) set(Expr(node, static_cast<int>(i)), placed.out[i]);
  }

  const LoopBody& body_;
  const PlaceArgs& args_;
  std::vector<Expr> leaves_;
  Metas metas_;
  std::vector<std::shared_ptr<const Node>> nodes_;
  std::unordered_map<Expr, Placement, ExprHash> at_;
};

Placement whole_if_partial(Placement p) { return p.is_partial() ? Placement::replicated() : p; }

// Time is not computed in parallel.
Placement of_sequence(Placement p) { return p.is_split() && p.axis > 0 ? p : Placement::replicated(); }

// How a tap of the body, placed so, comes out of the loop.
Placement of_tap(Placement p, bool sum) { return p.is_split() && !sum ? Placement::split(p.axis + 1) : p; }

}  // namespace

std::vector<Expr> LoopBody::roots() const {
  std::vector<Expr> all = next_states;
  for (const Tap& t : taps) all.push_back(t.value);
  return all;
}

std::string LoopBody::describe() const {
  std::unordered_map<const Node*, std::string> name;
  auto name_all = [&](const std::vector<Expr>& leaves, const char* prefix) {
    for (std::size_t i = 0; i < leaves.size(); ++i) name[&leaves[i].node()] = join_text(prefix, i);
  };
  name_all(elements, "element");
  name_all(states, "state");
  name_all(captures, "capture");
  auto text_of = [&](const Expr& e) {
    return e.output() == 0 ? name.at(&e.node()) : join_text(name.at(&e.node()), '.', e.output());
  };
  std::string text = reverse ? "backwards {" : "{";
  int count = 0;
  for (const auto& node : nodes_under(roots())) {
    if (name.contains(node.get())) continue;
    const auto& own = name[node.get()] = join_text('%', count++);
    text += join_text(' ', own, '=', node->op->name, '(', node->op->print(node->attrs.get()), ')');
    for (const Expr& input : node->inputs) text += ' ' + text_of(input);
    text += ';';
  }
  for (const Expr& next : next_states) text += " next " + text_of(next) + ';';
  for (const Tap& t : taps) text += (t.sum ? " sum " : " stack ") + text_of(t.value) + ';';
  return text + " }";
}

std::unordered_map<const Node*, std::vector<Meta>> infer_body(const LoopBody& body, std::span<const Meta> in) {
  Metas metas;
  const std::vector<Expr> leaves = leaves_of(body);
  if (in.size() != leaves.size())
    fail<ValueError>(Loop::kName, ": ", in.size(), " inputs for a body of ", body.elements.size(), " sequences, ",
                     body.states.size(), " states and ", body.captures.size(), " captured values");
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    Meta meta = in[i];
    if (i < body.elements.size()) meta.shape = of_one_turn(meta.shape);
    if (meta.dtype != leaves[i].dtype())
      fail<DTypeError>(Loop::kName, ": input ", i, " is ", meta.dtype, ", but the body takes ", leaves[i].dtype());
    metas[&leaves[i].node()] = {meta};
  }
  for (const auto& node : nodes_under(body.roots())) {
    if (metas.contains(node.get())) continue;
    if (node->inputs.empty()) {
      metas[node.get()] = node->outputs;
      continue;
    }
    std::vector<Meta> of_inputs;
    for (const Expr& input : node->inputs)
      of_inputs.push_back(metas.at(&input.node())[static_cast<std::size_t>(input.output())]);
    metas[node.get()] = node->op->infer(node->attrs.get(), of_inputs);
  }
  return metas;
}

std::vector<Meta> Loop::infer(const Attrs& a, std::span<const Meta> in) {
  const LoopBody& body = *a.body;
  if (body.elements.empty()) fail<ValueError>(kName, ": there is no sequence to go through; give at least one");
  if (in.size() < body.elements.size()) fail<ValueError>(kName, ": a sequence is missing");
  const std::int64_t time = common_time(body, in);
  const Metas metas = infer_body(body, in);
  auto meta_of = [&](const Expr& e) { return metas.at(&e.node())[static_cast<std::size_t>(e.output())]; };
  if (body.next_states.size() != body.states.size())
    fail<ValueError>(kName, ": the body has ", body.states.size(), " states, but makes ", body.next_states.size());
  std::vector<Meta> out;
  for (std::size_t i = 0; i < body.states.size(); ++i)
    out.push_back(merge_state(i, in[body.elements.size() + i], meta_of(body.next_states[i])));
  for (const Tap& t : body.taps) {
    Meta meta = meta_of(t.value);
    if (!t.sum) meta.shape = of_all_turns(meta.shape, time);
    out.push_back(std::move(meta));
  }
  return out;
}

// States begin as their initial values come. If a turn splits a replicated state, it is split from the beginning (the
// initial value contributes its own rows); a state that is split in two ways is gathered in each turn. Partial values
// are summed before they enter a loop or its next turn, but a tap stays partial: the sum over ranks of what a loop sums
// over turns is formed once, behind the loop.
Placed Loop::place(const Attrs& a, const PlaceArgs& args) {
  const LoopBody& body = *a.body;
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
  for (const Tap& t : body.taps) placed.out.push_back(of_tap(body_placer.at(t.value), t.sum));
  return placed;
}

Expr tap(const Expr& loop, const Expr& value, bool sum) {
  LoopBody& body = *loop.attrs<Loop::Attrs>().body;
  const auto n_states = body.states.size();
  for (std::size_t i = 0; i < body.taps.size(); ++i)
    if (body.taps[i].value == value && body.taps[i].sum == sum)
      return Expr(loop.handle(), static_cast<int>(n_states + i));
  std::vector<Meta> in;
  for (const Expr& input : loop.node().inputs) in.push_back(input.meta());
  body.taps.push_back({value, sum});
  // Outputs only ever grow, at the end, so no handle that exists is disturbed.
  const_cast<Node&>(loop.node()).outputs = Loop::infer(loop.attrs<Loop::Attrs>(), in);
  return Expr(loop.handle(), static_cast<int>(n_states + body.taps.size()) - 1);
}

}  // namespace syncline
