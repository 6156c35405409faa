// The gradient of a loop: a loop in the opposite direction. Its states are the gradients with respect to the forward
// states.
//
// The residuals of the forward loop provide the forward values that the gradient of an iteration needs. Each term of
// the gradient of a captured value is treated separately. A product over rows (the gradient of a weight) is computed
// once after the loop, over the rows of all iterations, instead of once per iteration. A product with a fixed matrix
// that ends in the gradient of a sequence is treated the same way. All other terms, such as a sum over rows (a bias),
// accumulate iteration by iteration while the rows are in the cache.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ops/control/loop_build.h"
#include "ops/graph/fill.h"
#include "ops/graph/leaf.h"
#include "ops/graph/substitute.h"
#include "syncline/backend/core.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/math.h"

namespace syncline {
namespace {

bool is_op(const Expr& e, std::string_view name) { return e.op().name == name; }

// Collects the terms of a nested sum. A sum that occurs again is one term; expanding it would double the terms at every
// level.
void collect_terms(const Expr& e, std::vector<Expr>& terms, std::unordered_set<const Node*>& seen) {
  const bool is_sum = is_op(e, "add") && e.input(0).shape() == e.shape() && e.input(1).shape() == e.shape();
  if (!is_sum || !seen.insert(&e.node()).second) return terms.push_back(e);
  collect_terms(e.input(0), terms, seen);
  collect_terms(e.input(1), terms, seen);
}

std::vector<Expr> terms_of(const Expr& e) {
  std::vector<Expr> terms;
  std::unordered_set<const Node*> seen;
  collect_terms(e, terms, seen);
  return terms;
}

Expr added(const Expr& a, const Expr& b) { return a ? add(a, b) : b; }

class LoopGradient {
 public:
  LoopGradient(const Expr& forward, std::span<const Expr> dy)
      : forward_(forward),
        body_(*forward.attrs<Loop::Attrs>().body),
        dy_(dy),
        active_(body_.states.size()),
        cotangent_(body_.states.size()) {
    for (const auto* leaves : {&body_.elements, &body_.states, &body_.captures})
      for (const Expr& leaf : *leaves) is_forward_.insert(&leaf.node());
    for (const auto& node : nodes_under(body_.roots())) is_forward_.insert(node.get());
  }

  std::vector<Expr> run() {
    make_cotangents();
    differentiate();
    for (const Expr& d : gradients_) find_needed(d);
    replace_needed();
    choose_residuals();
    build();
    return collect();
  }

 private:
  // One term of a gradient, made of outputs of the backward loop and of outside values.
  struct Source {
    Expr outside;  // or
    int residual = -1;
  };
  struct Term {
    enum Kind : std::uint8_t { kValue, kProduct } kind = kValue;
    Source a, b;  // kProduct: both
    Expr like;    // the term in one iteration
  };

  std::size_t n_elements() const { return body_.elements.size(); }
  std::size_t n_states() const { return body_.states.size(); }
  const Expr& input(std::size_t i) const { return forward_.input(static_cast<int>(i)); }
  Expr output(std::size_t i) const { return Expr(forward_.handle(), static_cast<int>(i)); }

  void make_cotangents() {
    for (std::size_t i = 0; i < n_states(); ++i) {
      if (is_floating(output(i).dtype())) cotangent_[i] = stand_in(output(i));
      active_[i] = cotangent_[i] && dy_[i];
    }
    for (std::size_t k = n_states(); k < dy_.size(); ++k) {
      const bool sum = body_.residuals[k - n_states()].sum;
      residual_gradient_.push_back(!dy_[k] ? Expr{} : sum ? stand_in(dy_[k]) : element_of(dy_[k]));
      if (dy_[k] && sum) replacements_[residual_gradient_.back()] = dy_[k];
      if (!dy_[k] || sum) continue;
      parts_.elements.push_back(residual_gradient_.back());
      parts_.sequences.push_back(dy_[k]);
    }
  }

  // Computes the gradients of one iteration with respect to elements, states and captures. A state is active if its
  // final value has a gradient, or if an active state or a residual with a gradient depends on it.
  void differentiate() {
    std::vector<Expr> wrt = body_.elements, outputs = body_.roots();
    wrt.insert(wrt.end(), body_.states.begin(), body_.states.end());
    wrt.insert(wrt.end(), body_.captures.begin(), body_.captures.end());
    outputs.resize(n_states() + residual_gradient_.size());
    for (bool grown = true; grown;) {
      std::vector<Expr> given;
      for (std::size_t i = 0; i < n_states(); ++i) given.push_back(active_[i] ? cotangent_[i] : Expr{});
      given.insert(given.end(), residual_gradient_.begin(), residual_gradient_.end());
      gradients_ = backpropagate(outputs, given, wrt);
      grown = false;
      for (std::size_t i = 0; i < n_states(); ++i) {
        if (!gradients_[n_elements() + i] || active_[i] || !cotangent_[i]) continue;
        active_[i] = true;
        grown = true;
      }
    }
  }

  // Finds the forward values that the gradient of an iteration uses.
  void find_needed(const Expr& gradient) {
    if (!gradient) return;
    if (is_forward_.contains(&gradient.node())) need(gradient);
    const Expr root = gradient;
    const auto stop = [&](const Expr& e) { return is_forward_.contains(&e.node()); };
    for (const auto& node : nodes_since(0, {&root, 1}, stop))
      for (const Expr& in : node->inputs)
        if (stop(in)) need(in);
  }

  void need(const Expr& value) {
    if (is_constant(value) || replacements_.contains(value) || !is_needed_.insert(value).second) return;
    if (const Expr same = fixed(value)) replacements_[value] = same;
    else needed_.push_back(value);
    if (!follows_from_shapes(value)) return;
    // A size from a residual would be a run-time value, which cannot determine a shape. Recompute it from the shapes.
    for (const Expr& in : value.node().inputs) need(in);
  }

  bool follows_from_shapes(const Expr& e) {
    if (e.op().shape_only) return true;
    if (const auto known = follows_.find(&e.node()); known != follows_.end()) return known->second;
    const std::vector<Expr>& operands = e.node().inputs;
    const bool follows = is_integer(e.dtype()) && !operands.empty() && e.node().outputs.size() == 1 &&
                         random_op_of(e.node()) == nullptr &&
                         std::all_of(operands.begin(), operands.end(),
                                     [&](const Expr& in) { return is_constant(in) || follows_from_shapes(in); });
    return follows_[&e.node()] = follows;
  }

  // Recomputes cheap functions of other needed values, which costs less than storing and reading them.
  void replace_needed() {
    std::sort(needed_.begin(), needed_.end(), [](const Expr& a, const Expr& b) { return a.node().id < b.node().id; });
    for (const Expr& value : needed_) {
      if (replacements_.contains(value)) continue;
      if (is_quick(value) || follows_from_shapes(value)) {
        replacements_[value] = substitute({&value, 1}, replacements_).front();
        continue;
      }
      const Expr sequence = forward_sequence(value);
      replacements_[value] = element_of(sequence);
      parts_.elements.push_back(replacements_[value]);
      parts_.sequences.push_back(sequence);
    }
  }

  bool is_quick(const Expr& value) {
    constexpr std::string_view kQuick[] = {"add", "sub", "mul", "neg"};
    const std::vector<Expr>& operands = value.node().inputs;
    return std::find(std::begin(kQuick), std::end(kQuick), value.op().name) != std::end(kQuick) &&
           std::all_of(operands.begin(), operands.end(), [&](const Expr& e) {
             const Expr outside = fixed(e);
             if (outside && is_constant(outside)) replacements_[e] = outside;
             return is_constant(e) || replacements_.contains(e);
           });
  }

  // The stacked values of a forward body value over all iterations.
  Expr forward_sequence(const Expr& value) {
    for (std::size_t i = 0; i < n_elements(); ++i)
      if (body_.elements[i] == value) return input(i);
    return residual(forward_, value);
  }

  // The stacked values or the sum over iterations, as a source for collect().
  Source source(const Expr& value, bool sum = false) {
    if (!sum && is_forward_.contains(&value.node()) && !is_constant(value))
      return {.outside = forward_sequence(value), .residual = -1};
    for (std::size_t i = 0; !sum && i < parts_.elements.size(); ++i)
      if (parts_.elements[i] == value) return {.outside = parts_.sequences[i], .residual = -1};
    auto& residuals = parts_.residuals;
    for (std::size_t i = 0; i < residuals.size(); ++i)
      if (residuals[i].value == value && residuals[i].sum == sum)
        return {.outside = {}, .residual = static_cast<int>(i)};
    residuals.push_back({value, sum});
    return {.outside = {}, .residual = static_cast<int>(residuals.size()) - 1};
  }

  // Returns the outside value of a capture; empty for other values.
  Expr fixed(const Expr& value) const {
    for (std::size_t i = 0; i < body_.captures.size(); ++i)
      if (body_.captures[i] == value) return input(n_elements() + n_states() + i);
    return {};
  }

  void choose_residuals() {
    const std::size_t first_capture = n_elements() + n_states();
    terms_.resize(gradients_.size());
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      if (!gradients_[i] || (i >= n_elements() && i < first_capture)) continue;
      if (!is_floating(gradients_[i].dtype())) continue;
      Expr rest;  // the sum of the terms without a special form
      for (const Expr& term : terms_of(gradients_[i]))
        if (!(i < n_elements() ? add_element_term(term, terms_[i]) : add_capture_term(term, terms_[i])))
          rest = added(rest, term);
      if (rest) terms_[i].push_back({Term::kValue, source(rest, i >= first_capture), {}, rest});
    }
  }

  bool add_element_term(const Expr& term, std::vector<Term>& terms) {
    if (!is_op(term, "dot")) return false;
    const Expr matrix = fixed(term.input(1));
    if (!matrix) return false;
    terms.push_back({Term::kProduct, source(term.input(0)), {.outside = matrix, .residual = -1}, term});
    return true;
  }

  bool add_capture_term(const Expr& term, std::vector<Term>& terms) {
    if (!is_op(term, "dot_kernel_grad")) return false;
    terms.push_back({Term::kProduct, source(term.input(0)), source(term.input(1)), term});
    return true;
  }

  void build() {
    std::vector<Expr> roots;
    for (std::size_t i = 0; i < n_states(); ++i) {
      if (!active_[i]) continue;
      const Expr& before = gradients_[n_elements() + i];
      parts_.states.push_back(cotangent_[i]);
      parts_.initial_states.push_back(dy_[i] ? dy_[i] : zeros_like(output(i)));
      roots.push_back(before ? before : zeros_like(cotangent_[i]));
    }
    for (const Residual& r : parts_.residuals) roots.push_back(r.value);
    roots = substitute(roots, replacements_);
    const auto active = static_cast<std::ptrdiff_t>(parts_.states.size());
    parts_.next_states.assign(roots.begin(), roots.begin() + active);
    for (std::size_t i = 0; i < parts_.residuals.size(); ++i)
      parts_.residuals[i].value = roots[static_cast<std::size_t>(active) + i];
    if (parts_.elements.empty()) {  // a loop needs one element to count the iterations
      parts_.elements.push_back(element_of(input(0)));
      parts_.sequences.push_back(input(0));
    }
    parts_.reverse = !body_.reverse;
    first_residual_ = static_cast<int>(active);
    backward_ = make_loop(std::move(parts_));
  }

  Expr value_of(const Source& s) const {
    return s.outside ? s.outside : Expr(backward_.handle(), first_residual_ + s.residual);
  }

  Expr value_of(const Term& term) const {
    const Expr a = value_of(term.a);
    if (term.kind == Term::kValue) return a;
    return Expr(make_node(term.like.op(), term.like.node().attrs, {a, value_of(term.b)}, {}));
  }

  std::vector<Expr> collect() const {
    std::vector<Expr> result(forward_.node().inputs.size());
    int state = 0;
    for (std::size_t i = 0; i < result.size(); ++i) {
      for (const Term& term : terms_[i]) result[i] = added(result[i], value_of(term));
      if (i >= n_elements() && i < n_elements() + n_states() && active_[i - n_elements()])
        result[i] = Expr(backward_.handle(), state++);
    }
    return result;
  }

  const Expr forward_;
  const LoopBody& body_;
  const std::span<const Expr> dy_;
  std::vector<bool> active_;             // states with a gradient
  std::vector<Expr> cotangent_;          // of each state; empty: not differentiable
  std::vector<Expr> residual_gradient_;  // in one iteration; empty: none
  std::unordered_set<const Node*> is_forward_;
  std::unordered_map<const Node*, bool> follows_;  // cache of follows_from_shapes
  std::vector<Expr> gradients_;                    // one iteration's gradients: elements, states, captures
  std::vector<Expr> needed_;                       // forward values that differ from iteration to iteration
  std::unordered_set<Expr, ExprHash> is_needed_;
  Replacements replacements_;  // forward values -> elements of the backward body or outside values
  LoopParts parts_;
  std::vector<std::vector<Term>> terms_;  // of the gradient of each input
  Expr backward_;
  int first_residual_ = 0;
};

}  // namespace

std::vector<Expr> Loop::grad(const Attrs&, const Expr& y, std::span<const Expr> dy) {
  return LoopGradient(y, dy).run();
}

}  // namespace syncline
