// Branch: computes one of two graphs. The condition may be unknown until a step runs.
//
// The plan inlines both bodies and joins their outputs with `choose`. A task that only one side needs is guarded by the
// condition (runtime/schedule/guards.h). If the condition is known when the plan is made, the plan ignores the other
// body.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ops/graph/op.h"

namespace syncline {

// Converts a scalar of any dtype to the truth value `x != 0` that guards steps.
struct Condition : WithoutAttrs {
  static constexpr std::string_view kName = "condition";
  static Meta infer(const Attrs&, std::span<const Meta> in);
  // All ranks must take the same side.
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static void run(const Attrs&, const KernelArgs& k);
  static constexpr NoGradient grad{"a truth value is not differentiable"};
};

// Inputs: x, alt, condition. Returns x if the condition holds, otherwise alt; both have one dtype and shape. Work that
// only the unused side needs is skipped.
struct Choose : WithoutAttrs {
  static constexpr std::string_view kName = "choose";
  static constexpr bool kMovesData = true;
  static constexpr bool kInPlace = true;
  static constexpr bool kTakesFloat16 = true;
  static Meta infer(const Attrs&, std::span<const Meta> in);
  static double bytes(const Attrs&, std::span<const Meta>, std::span<const Meta> out) { return 2 * bytes_of(out[0]); }
  static Placed place(const Attrs&, const PlaceArgs& args);
  static void run(const Attrs&, const KernelArgs& k);
  static Expr simplify(const Attrs&, std::span<const Expr> in, const Meta&);
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy);
};

// Two graphs over the same captured values, with outputs of the same dtypes and shapes.
struct BranchBodies {
  std::vector<Expr> captures;  // placeholders; all other leaves are constants
  std::vector<Expr> then_outputs, else_outputs;

  std::vector<Expr> roots() const;  // then_outputs followed by else_outputs
  const std::vector<Expr>& outputs(bool taken) const { return taken ? then_outputs : else_outputs; }
  std::string describe() const;
};

// Inputs: a condition, then the captured values. The gradient is another branch that repeats the forward computations
// it needs; the plan merges the duplicates.
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

// Calls each function once to build its body. Both must return the same number of values.
using BodyFunction = std::function<std::vector<Expr>()>;
std::vector<Expr> make_branch(const Expr& condition, const BodyFunction& then_body, const BodyFunction& else_body);

}  // namespace syncline
