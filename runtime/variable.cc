#include "runtime/variable.h"

#include <cstring>

#include "ops/math.h"
#include "runtime/function.h"
#include "runtime/session.h"

namespace syncline {
namespace {

void check_fits(const Variable& x, const Array& value) {
  if (value.dtype() != x.dtype())
    fail<DTypeError>("set_value: variable '", x.name(), "' holds ", x.dtype(), ", the value is ", value.dtype(),
                     "; cast it");
  if (value.shape() != x.shape())
    fail<ShapeError>("set_value: variable '", x.name(), "' has the shape ", x.shape(), ", the value ", value.shape());
}

void assign(const Variable& x, const Array& value) {
  std::memcpy(x.state().value().raw(), value.raw(), value.bytes());
  x.state().set_changed(true);
}

}  // namespace

Variable variable(const Array& value, VariableOptions options) {
  Session& session = Session::current();
  const std::string name = session.unique_name(options.name.empty() ? "variable" : options.name);
  auto state = std::make_shared<VariableState>(value.copy(), name);
  return Variable(apply<VariableLeaf>({}, {std::move(state), value.dtype(), value.shape()}, name));
}

Variable variable(const Expr& value, VariableOptions options) { return variable(eval(value), std::move(options)); }

Array get_value(const Variable& x) { return x.state().value().copy(); }

std::vector<Array> batch_get_value(std::span<const Variable> variables) {
  std::vector<Array> values;
  for (const Variable& v : variables) values.push_back(get_value(v));
  return values;
}

void set_value(const Variable& x, const Array& value) {
  check_fits(x, value);
  assign(x, value);
}

void batch_set_value(std::span<const std::pair<Variable, Array>> values) {
  for (const auto& [x, value] : values) check_fits(x, value);
  for (const auto& [x, value] : values) assign(x, value);
}

Update update(const Variable& x, const Expr& new_x) {
  if (new_x.dtype() != x.dtype())
    fail<DTypeError>("update: variable '", x.name(), "' holds ", x.dtype(), ", the new value is ", new_x.dtype(),
                     "; cast it");
  if (!accepts(new_x.shape(), x.shape()))
    fail<ShapeError>("update: variable '", x.name(), "' has the shape ", x.shape(), ", the new value ", new_x.shape());
  return {x, new_x};
}

Update update_add(const Variable& x, const Expr& increment) { return update(x, add(x, increment)); }
Update update_sub(const Variable& x, const Expr& decrement) { return update(x, sub(x, decrement)); }
Update moving_average_update(const Variable& x, const Expr& value, double momentum) {
  return update(x, x.expr() * momentum + value * (1.0 - momentum));
}

}  // namespace syncline
