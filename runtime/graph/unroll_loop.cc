#include "runtime/graph/unroll_loop.h"

#include <algorithm>

#include "ops/control/body.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

// Sums float16 values in float32, as a loop does.
Expr sum_of(const Expr& sum, const Expr& value) {
  const Expr wide = value.dtype() == DType::kFloat16 ? cast(value, DType::kFloat32) : value;
  return sum ? sum + wide : wide;
}

// The residual of a loop without iterations. Unknown dimensions become 0.
Expr empty_residual(const Meta& meta) {
  Shape shape = meta.shape;
  for (int axis = 0; axis < shape.ndim(); ++axis) shape[axis] = std::max<std::int64_t>(shape[axis], 0);
  return fill(shape, 0, meta.dtype);
}

}  // namespace

bool IterationValue::is_known() const {
  return whole || (!iterations.empty() && std::ranges::all_of(iterations, &IterationValue::is_known));
}

Expr IterationValue::stacked() const {
  if (whole) return whole;
  std::vector<Expr> values;
  for (const IterationValue& value : iterations) values.push_back(value.stacked());
  for (const Expr& value : values)
    if (value.shape() != values[0].shape())
      fail<ShapeError>("loop: iterations return values of shapes ", values[0].shape(), " and ", value.shape(),
                       ", which cannot be stacked; give them one shape");
  return stack(values, 0);
}

Unrolled unroll_loop(const Expr& loop, const UnrolledInputs& inputs, const RewriteBody& rewrite) {
  if (!is_repeatable(loop.node()))
    fail<ValueError>("loop: its sizes differ between iterations, so it cannot draw random numbers or print; do both ",
                     "outside the loop");
  const LoopBody& body = *loop.attrs<Loop::Attrs>().body;
  const std::size_t n_states = body.states.size();
  Unrolled result{inputs.initial_states, {}};
  const std::vector<Meta> outputs = inputs.iterations == 0 ? inputs.outputs() : loop.node().outputs;
  for (std::size_t i = 0; i < body.residuals.size(); ++i) {
    const Meta& meta = outputs[n_states + i];
    result.residuals.push_back(inputs.iterations == 0 ? IterationValue{empty_residual(meta)} : IterationValue{});
    if (!body.residuals[i].sum) result.residuals[i].iterations.resize(static_cast<std::size_t>(inputs.iterations));
  }
  for (std::int64_t k = 0; k < inputs.iterations; ++k) {
    const std::int64_t iteration = body.reverse ? inputs.iterations - 1 - k : k;
    LeafValues leaves;
    for (std::size_t i = 0; i < body.elements.size(); ++i)
      leaves.emplace_back(body.elements[i], inputs.element(i, iteration));
    for (std::size_t i = 0; i < n_states; ++i) leaves.emplace_back(body.states[i], IterationValue{result.states[i]});
    for (std::size_t i = 0; i < body.captures.size(); ++i)
      leaves.emplace_back(body.captures[i], IterationValue{inputs.captures[i]});
    const std::vector<IterationValue> roots = rewrite(iteration, leaves);
    for (std::size_t i = 0; i < n_states; ++i) {
      result.states[i] = roots[i].is_known() ? roots[i].stacked() : Expr{};
      if (result.states[i] && !accepts(outputs[i].shape, result.states[i].shape()))
        fail<ShapeError>("loop: a state of shape ", outputs[i].shape, " changes its shape to ",
                         result.states[i].shape(), "; keep its shape, or begin with a value whose shape is unknown");
    }
    for (std::size_t i = 0; i < body.residuals.size(); ++i) {
      const IterationValue& value = roots[n_states + i];
      if (!body.residuals[i].sum) result.residuals[i].iterations[static_cast<std::size_t>(iteration)] = value;
      else if (k == 0) result.residuals[i].whole = value.is_known() ? sum_of({}, value.stacked()) : Expr{};
      else if (Expr& sum = result.residuals[i].whole) sum = value.is_known() ? sum_of(sum, value.stacked()) : Expr{};
    }
  }
  for (std::size_t i = 0; i < body.residuals.size(); ++i)
    if (Expr& sum = result.residuals[i].whole) sum = cast(sum, loop.node().outputs[n_states + i].dtype);
  return result;
}

}  // namespace syncline
