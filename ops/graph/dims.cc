#include "syncline/dims.h"

#include <algorithm>

#include "ops/graph/fill.h"
#include "ops/graph/leaf.h"
#include "ops/graph/op.h"
#include "ops/graph/substitute.h"
#include "syncline/backend/core.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

// Appends the elements of a constant; false if e is none.
bool read_numbers(const Expr& e, std::vector<std::int64_t>& numbers) {
  if (e.is<Fill>()) {
    numbers.insert(numbers.end(), static_cast<std::size_t>(e.shape().size()),
                   static_cast<std::int64_t>(e.attrs<Fill::Attrs>().value));
    return true;
  }
  if (!e.is<Constant>()) return false;
  const Array values = e.attrs<Constant::Attrs>().value->array.cast(DType::kInt64);
  numbers.insert(numbers.end(), values.values<std::int64_t>().begin(), values.values<std::int64_t>().end());
  return true;
}

// Inputs: the operands, then the tensors among the numbers. None is left in a plan.
struct WithNumbers {
  static constexpr std::string_view kName = "with_numbers";
  struct Function {
    std::string name;
    int operands = 0;
    Shape numbers;        // unknown where a tensor stands
    std::vector<int> at;  // where each tensor begins
    Meta unknown;         // what is known of the result beforehand
    NumbersRule rule;
    std::string describe() const { return name; }
  };
  struct Attrs {
    std::shared_ptr<const Function> function;
    std::shared_ptr<RandomOp> random_op;  // that the rule draws by
  };
  static constexpr auto fields = std::tuple{field("function", &Attrs::function)};
  static Meta infer(const Attrs& a, std::span<const Meta>) { return a.function->unknown; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static Expr simplify(const Attrs& a, std::span<const Expr> in, const Meta&) {
    const Function& f = *a.function;
    const auto operands = in.first(static_cast<std::size_t>(f.operands));
    Shape numbers = f.numbers;
    for (std::size_t i = 0; i < f.at.size(); ++i) {
      std::vector<std::int64_t> found;
      SYNCLINE_CHECK(read_numbers(in[operands.size() + i], found));
      for (std::size_t k = 0; k < found.size(); ++k) numbers[f.at[i] + static_cast<int>(k)] = found[k];
    }
    return f.rule(operands, numbers);
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy);
};

// The gradient of `rule` with respect to operand `i`, as a rule whose last operand is the result's gradient.
NumbersRule gradient_rule(const NumbersRule& rule, std::size_t i) {
  return [rule, i](std::span<const Expr> operands, const Shape& numbers) {
    // Leaves in the operands' place: the walk back must end there.
    std::vector<Expr> leaves;
    Replacements back;
    for (const Expr& operand : operands.first(operands.size() - 1)) {
      leaves.push_back(apply<Placeholder>({}, {operand.dtype(), operand.shape(), 0}));
      back[leaves.back()] = operand;
    }
    const Expr y = rule(leaves, numbers);
    const Expr dx = backpropagate({&y, 1}, {&operands.back(), 1}, {&leaves[i], 1})[0];
    return dx ? substitute({&dx, 1}, back)[0] : zeros_like(operands[i]);
  };
}

std::vector<Expr> WithNumbers::grad(const Attrs& a, const Expr& y, const Expr& dy) {
  const Function& f = *a.function;
  std::vector<Expr> dx(y.node().inputs.size());
  for (int i = 0; i < f.operands; ++i) {
    if (!is_floating(y.input(i).dtype())) continue;
    std::vector<Expr> inputs(y.node().inputs.begin(), y.node().inputs.begin() + f.operands);
    inputs.push_back(dy);
    inputs.insert(inputs.end(), y.node().inputs.begin() + f.operands, y.node().inputs.end());
    auto of_input = std::make_shared<Function>(f);
    of_input->name = "gradient of " + f.name;
    of_input->operands = f.operands + 1;
    of_input->unknown = y.input(i).meta();
    of_input->rule = gradient_rule(f.rule, static_cast<std::size_t>(i));
    dx[static_cast<std::size_t>(i)] = apply<WithNumbers>(std::move(inputs), {std::move(of_input), a.random_op});
  }
  return dx;
}

SYNCLINE_REGISTER_OP(WithNumbers)

}  // namespace

Dims::Dims(std::initializer_list<Dim> entries) {
  for (const Dim& entry : entries) append(entry);
}

Dims Dims::of_numbers(std::string_view function, std::initializer_list<Dim> entries) {
  for (const Dim& entry : entries)
    if (!entry.is_number() && entry.tensor().ndim() != 0)
      fail<ShapeError>(function, ": a tensor of shape ", entry.tensor().shape(),
                       " where one number is wanted; give a scalar");
  return Dims(entries);
}

bool Dims::is_tensor(int i) const {
  return std::any_of(tensors_.begin(), tensors_.end(), [i](const auto& t) {
    return i >= t.first && i < t.first + (t.second.ndim() == 0 ? 1 : static_cast<int>(t.second.shape()[0]));
  });
}

void Dims::append(const Dim& entry) {
  if (entry.is_number()) return numbers_.push_back(entry.number());
  const Expr& e = entry.tensor();
  if (!is_integer(e.dtype())) fail<DTypeError>("a shape argument is a tensor of ", e.dtype(), "; cast it to int32");
  if (e.ndim() > 1 || !e.shape().is_known())
    fail<ShapeError>("a shape argument is a tensor of shape ", e.shape(),
                     "; give scalars, or a vector whose length is known");
  std::vector<std::int64_t> known;
  if (!read_numbers(e, known)) {
    known.assign(static_cast<std::size_t>(e.shape().size()), kUnknown);
    if (!known.empty()) tensors_.emplace_back(numbers_.ndim(), e);
  }
  for (const std::int64_t number : known) numbers_.push_back(number);
}

void Dims::append(const Dims& others) {
  const int begin = numbers_.ndim();
  for (const std::int64_t number : others.numbers_) numbers_.push_back(number);
  for (const auto& [at, tensor] : others.tensors_) tensors_.emplace_back(begin + at, tensor);
}

Expr stack(const Dims& entries, DType dtype) {
  std::vector<Expr> parts;
  auto tensor = entries.tensors().begin();
  for (int i = 0; i < entries.size();) {
    if (tensor != entries.tensors().end() && tensor->first == i) {
      const Expr part = tensor->second.ndim() == 0 ? expand_dims(tensor->second) : tensor->second;
      parts.push_back(part.dtype() == dtype ? part : cast(part, dtype));
      i += static_cast<int>(part.shape()[0]);
      ++tensor;
    } else {
      parts.push_back(constant_of(Array::from<std::int64_t>(Shape{1}, {entries.numbers()[i++]}).cast(dtype)));
    }
  }
  if (parts.empty()) return constant_of(Array(dtype, Shape{0}));
  return concatenate(std::move(parts), 0);
}

Dim dim(const Expr& x, int axis) {
  const int at = wrap_axis("dim", axis, x.ndim());
  if (x.shape()[at] >= 0) return x.shape()[at];
  return squeeze(slice_axis(shape(x), 0, at, 1), 0);
}

Dims dims_of(const Expr& x) {
  Dims dims;
  for (int axis = 0; axis < x.ndim(); ++axis) dims.append(dim(x, axis));
  return dims;
}

Expr with_numbers(std::string name, std::vector<Expr> operands, const Dims& dims, Meta unknown, NumbersRule rule,
                  std::shared_ptr<RandomOp> random_op) {
  if (!dims.has_tensors()) return rule(operands, dims.numbers());
  auto function = std::make_shared<WithNumbers::Function>();
  function->name = std::move(name);
  function->operands = static_cast<int>(operands.size());
  function->numbers = dims.numbers();
  function->unknown = std::move(unknown);
  function->rule = std::move(rule);
  for (const auto& [at, tensor] : dims.tensors()) {
    function->at.push_back(at);
    operands.push_back(tensor);
  }
  return apply<WithNumbers>(std::move(operands), {std::move(function), std::move(random_op)});
}

std::span<const Expr> numbers_of(const Node& node) {
  if (node.op != &def_of<WithNumbers>()) return {};
  const auto& function = *static_cast<const WithNumbers::Attrs*>(node.attrs.get())->function;
  return std::span(node.inputs).subspan(static_cast<std::size_t>(function.operands));
}

}  // namespace syncline
