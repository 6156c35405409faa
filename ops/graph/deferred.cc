#include "ops/graph/deferred.h"

#include <algorithm>

#include "ops/graph/known_elements.h"
#include "ops/graph/leaf.h"
#include "ops/graph/op.h"
#include "ops/graph/substitute.h"
#include "syncline/backend/core.h"
#include "syncline/backend/gradients.h"

namespace syncline {
namespace {

using Rule = std::function<Expr(std::span<const Expr> operands, std::span<const Shape> shapes, const Shape& numbers)>;

// Inputs: the operands, the `likes` (read for their shapes only), then the tensors among the numbers. Plans contain no
// Deferred node.
struct Deferred {
  static constexpr std::string_view kName = "deferred";
  struct Function {
    std::string name;
    std::size_t operands = 0, likes = 0;
    bool awaits_shapes = false;  // the rule needs the shapes of operands and likes
    Shape numbers{};             // unknown at the entries of tensors
    std::vector<int> at{};       // first entry of each tensor
    Meta unknown{};              // meta of the result before the rule runs
    std::ptrdiff_t like = -1;    // the input that has the shape of the result, or -1
    Rule rule;
    std::string describe() const { return name; }
  };
  struct Attrs {
    std::shared_ptr<const Function> function;
    std::shared_ptr<RandomOp> random_op;  // used by a rule that draws
  };
  static constexpr auto fields = std::tuple{field("function", &Attrs::function)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    const Function& f = *a.function;
    if (f.like >= 0) return {f.unknown.dtype, in[static_cast<std::size_t>(f.like)].shape};
    const auto is_known = [](const Meta& m) { return m.shape.is_known(); };
    if (!f.awaits_shapes || !std::ranges::all_of(in, is_known)) return f.unknown;
    std::vector<Expr> leaves;
    for (const Meta& m : in) leaves.push_back(apply<Placeholder>({}, {m.dtype, m.shape, 0}));
    return simplify(a, leaves, f.unknown).meta();
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static Expr simplify(const Attrs& a, std::span<const Expr> in, const Meta&) {
    const Function& f = *a.function;
    const auto awaited = in.first(f.operands + f.likes);
    const auto is_open = [](const Expr& x) { return !x.shape().is_known(); };
    if (f.awaits_shapes && std::ranges::any_of(awaited, is_open)) return {};
    std::vector<Shape> shapes;
    for (const Expr& like : awaited.last(f.likes)) shapes.push_back(like.shape());
    Shape numbers = f.numbers;
    for (std::size_t i = 0; i < f.at.size(); ++i) {
      std::vector<std::int64_t> found;
      SYNCLINE_CHECK(read_numbers(in[awaited.size() + i], found));
      for (std::size_t k = 0; k < found.size(); ++k) numbers[f.at[i] + static_cast<int>(k)] = found[k];
    }
    return f.rule(in.first(f.operands), shapes, numbers);
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy);
};

// The gradient of the function with respect to operand `i`: a rule whose last operand is the gradient of the result.
Rule gradient_rule(const Deferred::Function& function, std::size_t i) {
  return [name = function.name, rule = function.rule, i](std::span<const Expr> operands, std::span<const Shape> shapes,
                                                         const Shape& numbers) {
    // Replace the operands by leaves, at which backpropagation stops.
    std::vector<Expr> leaves;
    Replacements back;
    for (const Expr& operand : operands.first(operands.size() - 1)) {
      leaves.push_back(apply<Placeholder>({}, {operand.dtype(), operand.shape(), 0}));
      back[leaves.back()] = operand;
    }
    const Expr y = rule(leaves, shapes, numbers);
    // They differ if a known condition has taken the other side of a choice, whose shape is not this one's.
    const Shape &own = y.shape(), &of_gradient = operands.back().shape();
    if (own.is_known() && of_gradient.is_known() && own != of_gradient)
      fail<ShapeError>(name, ": the result has the shape ", own, ", but its gradient ", of_gradient,
                       "; both sides of a switch must have the same shape");
    const Expr dx = backpropagate({&y, 1}, {&operands.back(), 1}, {&leaves[i], 1})[0];
    return dx ? substitute({&dx, 1}, back)[0] : zeros_like(operands[i]);
  };
}

std::vector<Expr> Deferred::grad(const Attrs& a, const Expr& y, const Expr& dy) {
  const Function& f = *a.function;
  std::vector<Expr> dx(y.node().inputs.size());
  for (std::size_t i = 0; i < f.operands; ++i) {
    const Expr& x = y.node().inputs[i];
    if (!is_floating(x.dtype())) continue;
    std::vector<Expr> inputs = y.node().inputs;
    inputs.insert(inputs.begin() + static_cast<std::ptrdiff_t>(f.operands), dy);
    auto of_input = std::make_shared<Function>(f);
    of_input->name = "gradient of " + f.name;
    of_input->operands = f.operands + 1;
    of_input->unknown = x.meta();
    of_input->like = static_cast<std::ptrdiff_t>(i);
    of_input->rule = gradient_rule(f, i);
    dx[i] = apply<Deferred>(std::move(inputs), {std::move(of_input), a.random_op});
  }
  return dx;
}

SYNCLINE_REGISTER_OP(Deferred)

}  // namespace

Expr with_numbers(std::string name, std::vector<Expr> operands, const Dims& dims, Meta unknown, NumbersRule rule,
                  std::shared_ptr<RandomOp> random_op) {
  if (!dims.has_tensors()) return rule(operands, dims.numbers());
  auto function = std::make_shared<Deferred::Function>(
      Deferred::Function{.name = std::move(name),
                         .operands = operands.size(),
                         .numbers = dims.numbers(),
                         .unknown = std::move(unknown),
                         .rule = [rule = std::move(rule)](std::span<const Expr> known, std::span<const Shape>,
                                                          const Shape& numbers) { return rule(known, numbers); }});
  for (const auto& [at, tensor] : dims.tensors()) {
    function->at.push_back(at);
    operands.push_back(tensor);
  }
  return apply<Deferred>(std::move(operands), {std::move(function), std::move(random_op)});
}

namespace {

// Returns the result of the rule if the shapes are known, otherwise a deferred node.
Expr now_or_deferred(Deferred::Function function, std::vector<Expr> inputs) {
  function.awaits_shapes = true;
  const Deferred::Attrs attrs{std::make_shared<Deferred::Function>(std::move(function)), nullptr};
  const Expr known = Deferred::simplify(attrs, inputs, {});
  return known ? known : apply<Deferred>(std::move(inputs), attrs);
}

}  // namespace

Expr once_known(std::string name, std::vector<Expr> operands, Meta unknown, OperandsRule rule) {
  const std::size_t count = operands.size();
  return now_or_deferred({.name = std::move(name),
                          .operands = count,
                          .unknown = std::move(unknown),
                          .rule = [rule = std::move(rule)](std::span<const Expr> known, std::span<const Shape>,
                                                           const Shape&) { return rule(known); }},
                         std::move(operands));
}

Expr once_known_like(std::string name, std::vector<Expr> operands, std::vector<Expr> likes, DType dtype,
                     ShapesRule rule) {
  const std::size_t count = operands.size() + likes.size();
  std::vector<Expr> inputs = operands;
  inputs.insert(inputs.end(), likes.begin(), likes.end());
  return now_or_deferred({.name = std::move(name),
                          .operands = operands.size(),
                          .likes = likes.size(),
                          .unknown = {dtype, likes.back().shape()},
                          .like = static_cast<std::ptrdiff_t>(count) - 1,
                          .rule = [rule = std::move(rule)](std::span<const Expr> known, std::span<const Shape> shapes,
                                                           const Shape&) { return rule(known, shapes); }},
                         std::move(inputs));
}

bool is_deferred(const Node& node) { return node.op == &def_of<Deferred>(); }

static const Deferred::Function& function_of(const Node& node) {
  return *static_cast<const Deferred::Attrs*>(node.attrs.get())->function;
}

std::string_view deferred_name(const Node& node) {
  return is_deferred(node) ? std::string_view(function_of(node).name) : std::string_view();
}

std::span<const Expr> numbers_of(const Node& node) {
  if (!is_deferred(node)) return {};
  return std::span(node.inputs).subspan(function_of(node).operands + function_of(node).likes);
}

}  // namespace syncline
