// Branch: one of two graphs, by a condition that may be known only when a step runs. The plan takes branches apart
// again: both bodies become part of the graph around them, joined by `choose`, and each task that only one side needs
// runs only if the condition says so (runtime/schedule/guards.h). If the condition is known when the plan is made, the
// other body is never looked at.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ops/graph/op.h"

namespace syncline {

// A scalar of any dtype as the truth value that steps are guarded by: != 0.
struct Condition {
  static constexpr std::string_view kName = "condition";
  using Attrs = NoAttrs;
  static constexpr std::tuple<> fields{};
  static Meta infer(const Attrs&, std::span<const Meta> in);
  // Every rank must take the same way.
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static void run(const Attrs&, const KernelArgs& k);
  static constexpr NoGradient grad{"a truth value is not differentiable"};
};

// Inputs: x, alt, a condition. x where the condition holds, otherwise alt; both of one dtype and shape. What only the
// other one needs is not computed.
struct Choose {
  static constexpr std::string_view kName = "choose";
  static constexpr bool kInPlace = true;
  static constexpr bool kTakesFloat16 = true;
  using Attrs = NoAttrs;
  static constexpr std::tuple<> fields{};
  static Meta infer(const Attrs&, std::span<const Meta> in);
  static Placed place(const Attrs&, const PlaceArgs& args);
  static void run(const Attrs&, const KernelArgs& k);
  static Expr simplify(const Attrs&, std::span<const Expr> in, const Meta&);
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy);
};

// Two graphs over the same captured values, with outputs of the same dtypes and shapes.
struct BranchBodies {
  std::vector<Expr> captures;  // placeholders; all other leaves are constants
  std::vector<Expr> then_outputs, else_outputs;

  std::vector<Expr> roots() const;  // then's, else's
  const std::vector<Expr>& outputs(bool taken) const { return taken ? then_outputs : else_outputs; }
  std::string describe() const;
};

// Inputs: a condition, then the captured values. The gradient is another branch, which computes again what it needs of
// the forward one; the plan finds that both are the same.
struct Branch {
  static constexpr std::string_view kName = "branch";
  struct Attrs {
    std::shared_ptr<const BranchBodies> bodies;
  };
  static constexpr auto fields = std::tuple{field("bodies", &Attrs::bodies)};
  static std::vector<Meta> infer(const Attrs& a, std::span<const Meta> in);
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static Expr simplify(const Attrs&, std::span<const Expr>, const Meta&) { return {}; }  // the plan takes it apart
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, std::span<const Expr> dy);
};

// Each function is called once, to build its body. Both give as many values.
using BodyFunction = std::function<std::vector<Expr>()>;
std::vector<Expr> make_branch(const Expr& condition, const BodyFunction& then_body, const BodyFunction& else_body);

}  // namespace syncline
