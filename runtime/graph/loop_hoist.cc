#include "runtime/graph/loop_hoist.h"

#include <algorithm>

#include "ops/control/loop_build.h"
#include "ops/graph/fill.h"
#include "ops/graph/leaf.h"
#include "ops/graph/substitute.h"
#include "runtime/graph/concretize.h"

namespace syncline {
namespace {

class Hoister {
 public:
  Hoister(LoopBody& body, std::vector<Expr>& captured) : body_(body), captured_(captured) {
    for (std::size_t i = 0; i < captured.size(); ++i) outside_[body.captures[i]] = captured[i];
  }

  void run() {
    for (const auto& node : nodes_under(body_.roots())) rewrite(node);
    for (Expr& state : body_.next_states) state = graph_.now(state);
    for (Residual& residual : body_.residuals) residual.value = graph_.now(residual.value);
  }

 private:
  bool fixed(const Expr& e) const { return outside_.contains(e) || is_constant(e); }

  void rewrite(const std::shared_ptr<const Node>& node) {
    if (node->op->hoist != nullptr) {
      const std::vector<Expr> inputs = graph_.now(node->inputs);
      std::vector<bool> is_fixed;
      for (const Expr& input : inputs) is_fixed.push_back(fixed(input));
      if (const Expr hoisted = node->op->hoist(node->attrs.get(), inputs, is_fixed)) {
        check_rewrite(Expr(node), hoisted);
        return graph_.set(Expr(node), with_captures(hoisted));
      }
    }
    graph_.rebuild(node);
  }

  // Moves the operands that depend only on fixed values out of the loop.
  Expr with_captures(const Expr& hoisted) {
    std::vector<Expr> inputs;
    for (const Expr& input : hoisted.node().inputs) {
      const std::vector<Expr>& under = input.node().inputs;
      const bool moves = !under.empty() && std::all_of(under.begin(), under.end(), [&](auto& e) { return fixed(e); });
      inputs.push_back(moves ? capture(input) : input);
    }
    return Expr(make_node(hoisted.op(), hoisted.node().attrs, std::move(inputs), hoisted.name()));
  }

  Expr capture(const Expr& value) {
    for (const auto& [known, leaf] : moved_) {
      const Node &a = known.node(), &b = value.node();
      if (a.op == b.op && a.inputs == b.inputs && a.op->equal(a.attrs.get(), b.attrs.get())) return leaf;
    }
    const Expr leaf = stand_in(value);
    moved_.emplace_back(value, leaf);
    captured_.push_back(substitute({&value, 1}, outside_).front());
    body_.captures.push_back(leaf);
    return leaf;
  }

  LoopBody& body_;
  std::vector<Expr>& captured_;
  Bindings outside_;
  Rewritten graph_;
  std::vector<std::pair<Expr, Expr>> moved_;
};

}  // namespace

void hoist_from_body(LoopBody& body, std::vector<Expr>& captured) { Hoister(body, captured).run(); }

}  // namespace syncline
