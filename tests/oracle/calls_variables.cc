#include "syncline/backend/config.h"
#include "syncline/backend/core.h"
#include "syncline/backend/function.h"
#include "syncline/backend/math.h"
#include "syncline/backend/variable.h"
#include "tests/oracle/oracle_case.h"

namespace syncline::testing {
namespace {

Answer tensors_of(const std::vector<Array>& arrays) {
  std::vector<Expr> tensors;
  for (const Array& array : arrays) tensors.push_back(Answer::as_tensor(array));
  return tensors;
}

// Two steps of a function that returns the variable and twice the feed. Returns the variable of the first step, both
// outputs of the second, and the variable's last value.
Answer two_steps(const Call& call, const std::function<Update(const Variable&, const Expr&)>& updated) {
  const Variable v = variable(call.array(0));
  const Array& change = call.array(1);
  const Expr fed = placeholder({.shape = change.shape(), .dtype = change.dtype()});
  Function step({fed}, {identity(v), fed * 2.0}, {updated(v, fed)});
  const Array before = step({change})[0].copy();
  const std::vector<Array> after = step({eval(constant(change) + 1.0)});
  return tensors_of({before, after[0], after[1], get_value(v)});
}

}  // namespace

SYNCLINE_ORACLE_CALL(variable) { return variable(call.array(0)).expr(); }
SYNCLINE_ORACLE_CALL(get_value) { return get_value(variable(call.array(0))); }
SYNCLINE_ORACLE_CALL(eval) { return eval(constant(call.array(0)) * 2.0); }

SYNCLINE_ORACLE_CALL(set_value) {
  const Variable v = variable(call.array(0));
  set_value(v, call.array(1));
  return tensors_of({get_value(v), eval(v + v)});
}

SYNCLINE_ORACLE_CALL(batch_set_value) {
  std::vector<Variable> variables;
  std::vector<std::pair<Variable, Value>> values;
  for (int i = 0; i < call.size(); i += 2) {
    variables.push_back(variable(call.array(i)));
    values.emplace_back(variables.back(), call.array(i + 1));
  }
  batch_set_value(values);
  return tensors_of(batch_get_value(variables));
}

SYNCLINE_ORACLE_CALL(batch_get_value) {
  std::vector<Variable> variables;
  for (int i = 0; i < call.size(); ++i) variables.push_back(variable(call.array(i)));
  return tensors_of(batch_get_value(variables));
}

SYNCLINE_ORACLE_CALL(update) {
  return two_steps(call, [](const Variable& x, const Expr& value) { return update(x, value); });
}
SYNCLINE_ORACLE_CALL(update_add) {
  return two_steps(call, [](const Variable& x, const Expr& value) { return update_add(x, value); });
}
SYNCLINE_ORACLE_CALL(update_sub) {
  return two_steps(call, [](const Variable& x, const Expr& value) { return update_sub(x, value); });
}

SYNCLINE_ORACLE_CALL(moving_average_update) {
  const double momentum = call.get<double>("momentum");
  return two_steps(call,
                   [&](const Variable& x, const Expr& value) { return moving_average_update(x, value, momentum); });
}

SYNCLINE_ORACLE_CALL(zeros) { return zeros(call.get<Shape>("shape"), {.dtype = call.optional<DType>("dtype")}).expr(); }
SYNCLINE_ORACLE_CALL(ones) { return ones(call.get<Shape>("shape"), {.dtype = call.optional<DType>("dtype")}).expr(); }
SYNCLINE_ORACLE_CALL(zeros_like) { return zeros_like(call.tensor(0)); }
SYNCLINE_ORACLE_CALL(ones_like) { return ones_like(call.tensor(0)); }
SYNCLINE_ORACLE_CALL(identity) { return identity(call.tensor(0)); }
SYNCLINE_ORACLE_CALL(count_params) {
  return Answer::as_tensor(static_cast<int>(count_params(variable(call.array(0)))));
}
SYNCLINE_ORACLE_CALL(shape) { return shape(call.tensor(0)); }

SYNCLINE_ORACLE_CALL(stop_gradient) {
  const Expr x = call.tensor(0);
  return x * x + stop_gradient(x * x) * x;
}

SYNCLINE_ORACLE_CALL(constant) {
  const double value = call.get<nlohmann::json>("value") == true ? 1 : call.get<double>("value");
  return constant(value, call.get<DType>("dtype"), call.get<Shape>("shape"));
}

}  // namespace syncline::testing
