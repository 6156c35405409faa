// Properties of tensors, placeholder, manual_variable_initialization, batch_dot.
#include "syncline/backend/config.h"
#include "syncline/backend/core.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/backend/variable.h"
#include "tests/oracle/oracle_case.h"

namespace syncline::testing {
namespace {

// The tensor of a case: operand 0, else a variable of the case's shape or, if dimensions are unknown, a placeholder.
Expr subject(const Call& call) {
  if (call.has(0)) return call.tensor(0);
  const Shape shape = call.get<Shape>("shape");
  return shape.is_known() ? variable(Array(DType::kFloat32, shape)).expr() : placeholder({.shape = shape});
}

Expr made(const std::string& kind) {
  const Expr x = placeholder({.shape = {2, 3}});
  if (kind == "variable") return ones({2, 3});
  if (kind == "constant") return constant(1, DType::kFloat32, {2, 3});
  if (kind == "computed") return exp(x);
  if (kind == "gradient") return gradients(sum(x * x), {x})[0];
  return x;
}

}  // namespace

SYNCLINE_ORACLE_CALL(ndim) { return Answer::as_tensor(ndim(call.tensor(0))); }
SYNCLINE_ORACLE_CALL(int_shape) { return Answer::as_tensor(int_shape(subject(call))); }
SYNCLINE_ORACLE_CALL(get_variable_shape) { return Answer::as_tensor(get_variable_shape(subject(call))); }
SYNCLINE_ORACLE_CALL(dtype) { return Answer::as_tensor(std::string(name_of(dtype(call.tensor(0))))); }

SYNCLINE_ORACLE_CALL(is_placeholder) { return Answer::as_tensor(is_placeholder(made(call.get<std::string>("kind")))); }
SYNCLINE_ORACLE_CALL(is_keras_tensor) {
  return Answer::as_tensor(is_keras_tensor(made(call.get<std::string>("kind"))));
}
SYNCLINE_ORACLE_CALL(is_tensor) {
  const std::string kind = call.get<std::string>("kind");
  if (kind == "array") return Answer::as_tensor(is_tensor(Array::scalar(1.0F)));
  if (kind == "number") return Answer::as_tensor(is_tensor(1.0));
  if (kind == "text") return Answer::as_tensor(is_tensor(kind));
  return Answer::as_tensor(is_tensor(made(kind)));
}

SYNCLINE_ORACLE_CALL(placeholder) {
  PlaceholderOptions options{.dtype = call.get("dtype", floatx())};
  if (call.has("shape")) options.shape = call.get<Shape>("shape");
  if (call.has("ndim")) options.ndim = call.get<int>("ndim");
  const Expr x = placeholder(options);
  const Shape feed = call.get<Shape>("feed");
  const Array value = eval(arange(static_cast<double>(feed.size()), x.dtype())).reshaped(feed);
  return {Answer::as_tensor(int_shape(x)), Answer::as_tensor(std::string(name_of(dtype(x)))),
          Answer::as_tensor(Function({x}, {x + x})({value})[0].copy())};
}

SYNCLINE_ORACLE_CALL(manual_variable_initialization) {
  std::vector<Expr> seen;
  for (const bool value : call.get<std::vector<bool>>("values")) {
    manual_variable_initialization(value);
    seen.push_back(Answer::as_tensor(get_value(variable(Array::from<float>(Shape{2}, {1, 2})))));
  }
  return seen;
}

SYNCLINE_ORACLE_CALL(batch_dot) {
  if (!call.has("axes")) return batch_dot(call.tensor(0), call.tensor(1));
  const std::vector<int> axes = call.list("axes");
  if (axes.size() == 1) return batch_dot(call.tensor(0), call.tensor(1), axes[0]);
  return batch_dot(call.tensor(0), call.tensor(1), {axes[0], axes[1]});
}

}  // namespace syncline::testing
