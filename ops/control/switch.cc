#include "ops/control.h"
#include "ops/control/branch.h"
#include "ops/math.h"
#include "ops/shape.h"

namespace syncline {
namespace {

// One way for the whole tensor.
Expr choose_side(const Expr& condition, const TensorOrFunction& then_expression,
                 const TensorOrFunction& else_expression) {
  if (then_expression.is_function() || else_expression.is_function())
    return make_branch(
               condition, [&] { return std::vector<Expr>{then_expression.get()}; },
               [&] { return std::vector<Expr>{else_expression.get()}; })
        .front();
  return apply<Choose>({then_expression.get(), else_expression.get(), apply<Condition>({condition})});
}

void check_shapes(const Expr& condition, const Expr& x, const Expr& alt) {
  if (condition.ndim() > x.ndim() || condition.ndim() > alt.ndim())
    fail<ShapeError>(
        "switch: Rank of condition should be less than or equal to rank of then and else expressions; the ",
        "condition is ", condition.shape(), ", the expressions are ", x.shape(), " and ", alt.shape());
  bool fits = x.ndim() == alt.ndim();
  for (int axis = 0; fits && axis < x.ndim(); ++axis)
    fits = x.shape()[axis] < 0 || alt.shape()[axis] < 0 || x.shape()[axis] == alt.shape()[axis];
  if (!fits)
    fail<ShapeError>("switch: then_expression has the shape ", x.shape(), " and else_expression ", alt.shape(),
                     "; both must have one shape");
  for (int axis = 0; axis < condition.ndim(); ++axis) {
    const std::int64_t have = condition.shape()[axis], wanted = x.shape()[axis];
    if (have != 1 && have >= 0 && wanted >= 0 && have != wanted)
      fail<ShapeError>("switch: a condition of shape ", condition.shape(), " does not fit expressions of shape ",
                       x.shape(), "; its axes are their first ones, each as long or of one element");
  }
}

// Element by element.
Expr choose_elements(Expr condition, const Expr& x, const Expr& alt) {
  check_shapes(condition, x, alt);
  if (condition.dtype() != DType::kBool) condition = cast(condition, DType::kBool);
  while (condition.ndim() < x.ndim()) condition = expand_dims(condition, -1);
  return select(condition, x, alt);
}

}  // namespace

std::vector<Expr> switch_(const Expr& condition, const SeveralValues& then_values, const SeveralValues& else_values) {
  return make_branch(condition, then_values, else_values);
}

Expr switch_(const Expr& condition, const TensorOrFunction& then_expression, const TensorOrFunction& else_expression) {
  if (condition.ndim() == 0) return choose_side(condition, then_expression, else_expression);
  return choose_elements(condition, then_expression.get(), else_expression.get());
}

}  // namespace syncline
