#include "ops/control/branch.h"
#include "ops/graph/deferred.h"
#include "syncline/backend/control.h"
#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

// Chooses one side for the whole tensor.
Expr choose_side(const Expr& condition, const TensorOrFunction& then_expression,
                 const TensorOrFunction& else_expression) {
  if (then_expression.is_function() || else_expression.is_function())
    return make_branch(
               condition, [&] { return std::vector<Expr>{then_expression.get()}; },
               [&] { return std::vector<Expr>{else_expression.get()}; })
        .front();
  return apply<Choose>({then_expression.get(), else_expression.get(), apply<Condition>({condition})});
}

// Checks that the shapes match. Returns false if the result depends on unknown sizes.
bool check_shapes(const Expr& condition, const Expr& x, const Expr& alt) {
  if (condition.ndim() > x.ndim() || condition.ndim() > alt.ndim())
    fail<ShapeError>(
        "switch: Rank of condition should be less than or equal to rank of then and else expressions; the ",
        "condition is ", condition.shape(), ", the expressions are ", x.shape(), " and ", alt.shape());
  bool fits = x.ndim() == alt.ndim(), decided = true;
  for (int axis = 0; fits && axis < x.ndim(); ++axis) {
    const bool known = x.shape()[axis] >= 0 && alt.shape()[axis] >= 0;
    decided = decided && known;
    fits = !known || x.shape()[axis] == alt.shape()[axis];
  }
  if (!fits)
    fail<ShapeError>("switch: then_expression has the shape ", x.shape(), " and else_expression ", alt.shape(),
                     "; both must have the same shape");
  for (int axis = 0; axis < condition.ndim(); ++axis) {
    const std::int64_t have = condition.shape()[axis], wanted = x.shape()[axis];
    if (have != 1 && have >= 0 && wanted >= 0 && have != wanted)
      fail<ShapeError>("switch: a condition of shape ", condition.shape(), " does not fit expressions of shape ",
                       x.shape(), "; its axes must have the sizes of their first axes, or size 1");
    decided = decided && (have == 1 || have == wanted);
  }
  return decided;
}

// Chooses a side for each element.
Expr choose_elements(const Expr& condition, const Expr& x, const Expr& alt) {
  const bool decided = check_shapes(condition, x, alt);
  Expr wide = condition.dtype() == DType::kBool ? condition : cast(condition, DType::kBool);
  while (wide.ndim() < x.ndim()) wide = expand_dims(wide, -1);
  const Expr y = select(wide, x, alt);
  if (decided) return y;
  return once_known("switch", {condition, x, alt}, y.meta(),
                    [](std::span<const Expr> in) { return choose_elements(in[0], in[1], in[2]); });
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
