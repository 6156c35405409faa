#include "runtime/graph/loop_graph.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ops/control/loop_build.h"
#include "ops/graph/fill.h"
#include "ops/graph/leaf.h"
#include "ops/graph/substitute.h"
#include "runtime/graph/concretize.h"
#include "runtime/graph/loop_hoist.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"

namespace syncline {
namespace {

// Builder for a loop: its body and inputs.
struct Parts {
  LoopBody body;
  std::vector<Expr> sequences, initial_states, captured;

  // The body's leaf for a sequence. Equal sequences share a leaf.
  Expr element(const Expr& sequence) {
    const Expr one = element_of(sequence);
    if (sequence.is<Fill>()) return fill(one.shape(), sequence.attrs<Fill::Attrs>().value, one.dtype());
    return add(sequence, one, body.elements, sequences);
  }

  Expr capture(const Expr& value) {
    return is_constant(value) ? value : add(value, stand_in(value), body.captures, captured);
  }

  // Returns the residual's index. Equal residuals share an index.
  std::size_t residual(const Residual& wanted) {
    const auto found = std::find_if(body.residuals.begin(), body.residuals.end(), [&](const Residual& known) {
      return known.value == wanted.value && known.sum == wanted.sum;
    });
    if (found != body.residuals.end()) return static_cast<std::size_t>(found - body.residuals.begin());
    body.residuals.push_back(wanted);
    return body.residuals.size() - 1;
  }

  Expr loop(std::int64_t iterations) {
    if (body.elements.empty()) {  // a loop needs a sequence to count iterations
      sequences.push_back(fill(Shape{iterations}, 0, DType::kUint8));
      body.elements.push_back(element_of(sequences.back()));
    }
    std::vector<Expr> inputs = sequences;
    inputs.insert(inputs.end(), initial_states.begin(), initial_states.end());
    inputs.insert(inputs.end(), captured.begin(), captured.end());
    return apply<Loop>(std::move(inputs), {std::make_shared<LoopBody>(std::move(body))});
  }

 private:
  static Expr add(const Expr& value, const Expr& leaf, std::vector<Expr>& leaves, std::vector<Expr>& values) {
    const auto found = std::find(values.begin(), values.end(), value);
    if (found != values.end()) return leaves[static_cast<std::size_t>(found - values.begin())];
    leaves.push_back(leaf);
    values.push_back(value);
    return leaf;
  }
};

const LoopBody& body_of(const Expr& loop) { return *loop.attrs<Loop::Attrs>().body; }

// The states and leaves that a loop needs for the outputs that are read.
class Needed {
 public:
  Needed(const LoopBody& body, const std::vector<bool>& output_is_read) : body_(body), states_(body.states.size()) {
    std::vector<Expr> roots;
    for (std::size_t i = 0; i < body.residuals.size(); ++i)
      if (output_is_read[body.states.size() + i]) roots.push_back(body.residuals[i].value);
    for (std::size_t i = 0; i < states_.size(); ++i)
      if (output_is_read[i]) add_state(i, roots);
    for (bool grown = true; grown;) {
      reached_.clear();
      for (const auto& node : nodes_under(roots)) reached_.insert(node.get());
      grown = false;
      for (std::size_t i = 0; i < states_.size(); ++i) {
        if (states_[i] || !has(body.states[i])) continue;
        add_state(i, roots);
        grown = true;
      }
    }
  }

  const std::vector<bool>& states() const { return states_; }
  bool has(const Expr& leaf) const { return reached_.contains(&leaf.node()); }

 private:
  void add_state(std::size_t i, std::vector<Expr>& roots) {
    states_[i] = true;
    roots.push_back(body_.next_states[i]);
  }

  const LoopBody& body_;
  std::unordered_set<const Node*> reached_;
  std::vector<bool> states_;
};

class Pruner {
 public:
  std::vector<Expr> run(const std::vector<Expr>& roots) {
    const auto nodes = nodes_under(roots);
    for (const Expr& root : roots) read(root);
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) read_inputs(*it);
    for (const auto& node : nodes) rebuild(node);
    return graph_.now(roots);
  }

 private:
  void read_inputs(const std::shared_ptr<const Node>& node) {
    std::vector<bool> output_is_read;
    bool any = false;
    for (std::size_t i = 0; i < node->outputs.size(); ++i) {
      output_is_read.push_back(read_.contains(Expr(node, static_cast<int>(i))));
      any = any || output_is_read.back();
    }
    if (!any) return;
    live_.insert(node.get());
    if (node->op != &def_of<Loop>()) {
      for (const Expr& input : node->inputs) read(input);
      return;
    }
    const Expr loop(node);
    const LoopBody& body = body_of(loop);
    const auto [it, fresh] = needed_.try_emplace(node.get(), body, output_is_read);
    auto input = node->inputs.begin();
    for (const Expr& leaf : body.elements) read_if(it->second.has(leaf), *input++);
    for (const bool state : it->second.states()) read_if(state, *input++);
    for (const Expr& leaf : body.captures) read_if(it->second.has(leaf), *input++);
  }

  void read_if(bool needed, const Expr& e) {
    if (needed) read(e);
  }

  void read(const Expr& e) {
    read_.insert(e);
    ++readers_[e];
  }

  void rebuild(const std::shared_ptr<const Node>& node) {
    if (!live_.contains(node.get())) return;
    if (const auto found = needed_.find(node.get()); found != needed_.end()) rebuild_loop(Expr(node), found->second);
    else graph_.rebuild(node);
  }

  void rebuild_loop(const Expr& loop, const Needed& needed) {
    const LoopBody& body = body_of(loop);
    Parts parts;
    parts.body.reverse = body.reverse;
    auto input = loop.node().inputs.begin();
    auto keep = [&](bool wanted, const Expr& leaf, std::vector<Expr>& leaves, std::vector<Expr>& values) {
      if (wanted) {
        leaves.push_back(leaf);
        values.push_back(graph_.now(*input));
      }
      ++input;
    };
    std::unordered_set<Expr, ExprHash> own;  // elements of sequences that only this loop reads
    for (const Expr& leaf : body.elements) {
      if (readers_[*input] == 1) own.insert(leaf);
      keep(needed.has(leaf), leaf, parts.body.elements, parts.sequences);
    }
    for (std::size_t i = 0; i < body.states.size(); ++i)
      keep(needed.states()[i], body.states[i], parts.body.states, parts.initial_states);
    for (const Expr& leaf : body.captures) keep(needed.has(leaf), leaf, parts.body.captures, parts.captured);
    std::vector<int> kept;  // outputs
    for (std::size_t i = 0; i < body.states.size(); ++i)
      if (needed.states()[i]) {
        parts.body.next_states.push_back(body.next_states[i]);
        kept.push_back(static_cast<int>(i));
      }
    for (std::size_t i = 0; i < body.residuals.size(); ++i) {
      const int output = static_cast<int>(body.states.size() + i);
      if (!read_.contains(Expr(loop.handle(), output))) continue;
      parts.body.residuals.push_back(body.residuals[i]);
      kept.push_back(output);
    }
    prune_body(parts.body);
    const std::int64_t iterations = loop.input(0).shape()[0];
    if (iterations > 1) {
      multiply_per_iteration(parts, own);
      hoist_from_body(parts.body, parts.captured);
    }
    const Expr fresh = parts.loop(iterations);
    for (std::size_t i = 0; i < kept.size(); ++i)
      graph_.set(Expr(loop.handle(), kept[i]), Expr(fresh.handle(), static_cast<int>(i)));
  }

  // Moves the product of a sequence and a matrix into the body if only the body reads it. `hoist` packs the matrix
  // once, so an iteration's part costs no more than its share of the whole product, and the part is in the cache when
  // used.
  static void multiply_per_iteration(Parts& parts, const std::unordered_set<Expr, ExprHash>& own) {
    Bindings products;
    for (std::size_t i = parts.sequences.size(); i-- > 0;) {
      const Expr leaf = parts.body.elements[i], product = parts.sequences[i];
      if (!own.contains(leaf) || !pays_per_iteration(product)) continue;
      parts.body.elements.erase(parts.body.elements.begin() + static_cast<std::ptrdiff_t>(i));
      parts.sequences.erase(parts.sequences.begin() + static_cast<std::ptrdiff_t>(i));
      const Node& node = product.node();
      products[leaf] =
          Expr(make_node(*node.op, node.attrs, {parts.element(node.inputs[0]), parts.capture(node.inputs[1])}));
      check_rewrite(leaf, products[leaf]);
    }
    if (products.empty()) return;
    set_roots(parts.body, substitute(parts.body.roots(), products));
  }

  // True if an iteration has enough rows for the product's inner loops and its operand is not larger than the product.
  static bool pays_per_iteration(const Expr& sequence) {
    constexpr std::int64_t kFewestRows = 8;
    if (sequence.op().name != "dot" || sequence.ndim() < 3 || !is_floating(sequence.dtype())) return false;
    const Expr &x = sequence.input(0), &w = sequence.input(1);
    const Shape& shape = x.shape();
    if (shape.product(1, shape.ndim() - 1) < kFewestRows || shape.back() > sequence.shape().back()) return false;
    const Expr element = element_of(x);
    const std::vector<Expr> inputs{element, w};
    return sequence.op().hoist(sequence.node().attrs.get(), inputs, {false, true}).handle() != nullptr;
  }

  // Prunes the loops within the body.
  static void prune_body(LoopBody& body) { set_roots(body, prune_loops(body.roots())); }

  static void set_roots(LoopBody& body, const std::vector<Expr>& roots) {
    for (std::size_t i = 0; i < roots.size(); ++i)
      (i < body.next_states.size() ? body.next_states[i] : body.residuals[i - body.next_states.size()].value) =
          roots[i];
  }

  std::unordered_set<Expr, ExprHash> read_;
  std::unordered_set<const Node*> live_;
  std::unordered_map<const Node*, Needed> needed_;
  std::unordered_map<Expr, int, ExprHash> readers_;
  Rewritten graph_;
};

// The float32 value before it was rounded to float16, if any; otherwise a cast to float32.
Expr not_rounded(const Expr& half) {
  const bool rounds = half.op().name == "cast" && half.input(0).dtype() == DType::kFloat32;
  return rounds ? half.input(0) : cast(half, DType::kFloat32);
}

}  // namespace

std::optional<std::vector<Expr>> concretize_loop(const Expr& loop, const std::vector<Expr>& inputs, bool simplify) {
  const LoopBody& body = body_of(loop);
  const std::size_t n_states = body.states.size();
  std::vector<Meta> metas;
  for (const Expr& input : inputs) metas.push_back(input.meta());
  const std::vector<Meta> out = Loop::infer(loop.attrs<Loop::Attrs>(), metas);
  Parts parts;
  parts.body.reverse = body.reverse;
  Bindings bindings;
  auto input = inputs.begin();
  for (const Expr& element : body.elements) bindings[element] = parts.element(*input++);
  for (std::size_t i = 0; i < n_states; ++i) {
    parts.initial_states.push_back(*input++);
    parts.body.states.push_back(apply<Placeholder>({}, {out[i].dtype, out[i].shape, 0}, body.states[i].name()));
    bindings[body.states[i]] = parts.body.states.back();
  }
  for (const Expr& capture : body.captures) bindings[capture] = parts.capture(*input++);

  const Concrete concrete = concretize(body.roots(), bindings, simplify, {});
  if (!concrete.sizes.empty()) return {};
  const std::vector<Expr>& roots = concrete.roots;
  parts.body.next_states.assign(roots.begin(), roots.begin() + static_cast<std::ptrdiff_t>(n_states));
  std::vector<std::size_t> number;  // of each old residual in the new body
  for (std::size_t i = 0; i < body.residuals.size(); ++i) {
    const Expr& value = roots[n_states + i];
    const bool half = body.residuals[i].sum && value.dtype() == DType::kFloat16;  // summed in float32
    number.push_back(parts.residual({half ? not_rounded(value) : value, body.residuals[i].sum}));
  }
  const Expr fresh = parts.loop(inputs[0].shape()[0]);
  std::vector<Expr> outputs;
  for (std::size_t i = 0; i < n_states; ++i) outputs.emplace_back(fresh.handle(), static_cast<int>(i));
  for (std::size_t i = 0; i < number.size(); ++i)
    outputs.push_back(cast(Expr(fresh.handle(), static_cast<int>(n_states + number[i])), out[n_states + i].dtype));
  return outputs;
}

std::vector<Expr> prune_loops(const std::vector<Expr>& roots) {
  const auto nodes = nodes_under(roots);
  const auto is_loop = [](const auto& node) { return node->op == &def_of<Loop>(); };
  return std::any_of(nodes.begin(), nodes.end(), is_loop) ? Pruner().run(roots) : roots;
}

}  // namespace syncline
