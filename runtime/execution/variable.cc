#include "syncline/backend/variable.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <optional>

#include "ops/graph/leaf.h"
#include "runtime/placement/agreement.h"
#include "runtime/placement/strategy.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"
#include "syncline/config.h"
#include "syncline/session.h"

namespace syncline {
namespace {

// Numbers take the session's floatx.
VariableOptions with_floatx(VariableOptions options) {
  if (!options.dtype) options.dtype = current_config().floatx;
  return options;
}

Variable filled(const Shape& shape, double value, VariableOptions options) {
  options = with_floatx(std::move(options));
  return variable(fill(shape, value, *options.dtype), std::move(options));
}

}  // namespace

void VariableState::set_by_hand(const Array& value) {
  if (shared_) value_ = value.copy();
  else std::memcpy(value_.raw(), value.raw(), value.bytes());
  agreed_ = false;
  whole_.reset();
}

void VariableState::exchange() {
  whole_.reset();
  std::swap(shared_->now, shared_->next);
  value_ = shared_->now;
}

void VariableState::unshare() {
  if (is_split())
    fail<Error>("variable '", name_,
                "' is split between the nodes of a job (SYNCLINE_OPTIMIZER_STATE), and this rank has ",
                "a part of it only; use it in that job's session");
  value_ = value_.copy();
  shared_.reset();
  agreed_ = false;  // each rank may set another value
}

VariableState& Variable::state() const { return *leaf_.attrs<VariableLeaf::Attrs>().state; }

Array Value::for_variable(const std::string& caller, const Variable& x) const {
  const Array value = number_ ? array_.cast(x.dtype()) : array_;
  if (value.dtype() != x.dtype())
    fail<DTypeError>(caller, ": variable '", x.name(), "' holds ", x.dtype(), ", but the value is ", value.dtype(),
                     "; cast the value");
  if (value.shape() != x.shape())
    fail<ShapeError>(caller, ": variable '", x.name(), "' has the shape ", x.shape(), ", but the value has ",
                     value.shape());
  return value;
}

Variable variable(const Array& value, VariableOptions options) {
  Session& session = Session::current();
  const std::string name = session.unique_name(options.name.empty() ? "variable" : options.name);
  Array own = options.dtype && *options.dtype != value.dtype() ? value.cast(*options.dtype) : value.copy();
  const DType dtype = own.dtype();
  auto state = std::make_shared<VariableState>(std::move(own), name, std::move(options.constraint), options.partial);
  return Variable(apply<VariableLeaf>({}, {std::move(state), dtype, value.shape()}, name));
}

Variable variable(const Expr& value, VariableOptions options) { return variable(eval(value), std::move(options)); }

Variable variable(double value, VariableOptions options) {
  return variable(Array::scalar(value), with_floatx(std::move(options)));
}

Variable zeros(const Shape& shape, VariableOptions options) { return filled(shape, 0, std::move(options)); }
Variable ones(const Shape& shape, VariableOptions options) { return filled(shape, 1, std::move(options)); }

Variable eye(const Shape& size, VariableOptions options) {
  if (size.ndim() < 1 || size.ndim() > 2)
    fail<ValueError>("eye: the size is ", size, "; give the number of rows, or rows and columns");
  options = with_floatx(std::move(options));
  return variable(diagonal_of_ones(size[0], size.back(), *options.dtype), std::move(options));
}

namespace {

bool is_divided(const Variable& x) {
  const VariableState& state = x.state();
  return (state.partial() && divides_partial_variables(Session::current().strategy())) ||
         (state.is_split() && state.whole() == nullptr);
}

// Memory for values that are gathered one after the other.
struct ValueRoom {
  ValueRoom(std::span<const Variable> variables, const std::vector<bool>& keep) {
    std::size_t largest = 0;
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const Variable& v = variables[i];
      const std::size_t bytes = static_cast<std::size_t>(v.shape().size()) * size_of(v.dtype());
      if (!keep[i]) largest = std::max(largest, bytes);
    }
    scratch = Array::uninitialized(DType::kUint8, {static_cast<std::int64_t>(largest)});
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const Variable& v = variables[i];
      values.push_back(keep[i] ? Array::uninitialized(v.dtype(), v.shape())
                               : Array::borrow(v.dtype(), v.shape(), scratch.raw()));
    }
  }
  std::vector<Array> values;
  Array scratch;  // of all values that this rank does not keep
};

// The whole values of divided variables. Collective, with the same variables and purpose on every rank. A rank may use
// only the values that it keeps.
ValueRoom gathered(std::span<const Variable> divided, const std::vector<bool>& keep, std::string_view purpose) {
  if (divided.empty()) return {divided, keep};
  const auto name = [&](const Variable& v) {
    return join_text("the value of '", v.name(), "'", purpose.empty() ? "" : " for ", purpose,
                     ", which every rank must read");
  };
  std::optional<ValueRoom> room;
  try {
    room.emplace(divided, keep);
  } catch (const std::bad_alloc&) {
  }
  const std::string all = divided.size() == 1
                              ? name(divided.front())
                              : join_text(divided.size(), " values, the first of which is ", name(divided.front()));
  require_memory(Session::current().strategy(), all, room.has_value());
  for (std::size_t i = 0; i < divided.size(); ++i)
    Function({}, {divided[i]}, {}, name(divided[i])).run(std::span<const Array>{}, {&room->values[i], 1});
  return std::move(*room);
}

}  // namespace

Array get_value(const Variable& x) { return batch_get_value({&x, 1}).front(); }

std::vector<Array> batch_get_value(std::span<const Variable> variables) { return batch_get_value(variables, {}); }

std::vector<Array> batch_get_value(std::span<const Variable> variables, std::string_view purpose) {
  std::vector<Variable> divided;
  std::copy_if(variables.begin(), variables.end(), std::back_inserter(divided), &is_divided);
  const ValueRoom wholes = gathered(divided, std::vector<bool>(divided.size(), true), purpose);
  std::vector<Array> values;
  for (auto next = wholes.values.begin(); const Variable& v : variables) {
    if (is_divided(v)) values.push_back(*next++);
    else values.push_back(v.state().is_split() ? v.state().whole()->copy() : v.state().value().copy());
  }
  return values;
}

void hold_values(std::span<const Variable> variables, bool keep) {
  hold_values(variables, std::vector<bool>(variables.size(), keep));
}

void hold_values(std::span<const Variable> variables, const std::vector<bool>& keep) {
  std::vector<Variable> split;
  std::vector<bool> keep_split;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i].state().is_split()) continue;
    split.push_back(variables[i]);
    keep_split.push_back(keep.at(i));
  }
  ValueRoom wholes = gathered(split, keep_split, {});
  for (std::size_t i = 0; i < split.size(); ++i)
    if (keep_split[i]) split[i].state().hold(std::move(wholes.values[i]));
}

void release_values(std::span<const Variable> variables) {
  for (const Variable& v : variables) v.state().hold({});
}

void set_value(const Variable& x, const Value& value) { x.state().set_by_hand(value.for_variable("set_value", x)); }

void batch_set_value(std::span<const std::pair<Variable, Value>> values) {
  std::vector<Array> arrays;
  for (const auto& [x, value] : values) arrays.push_back(value.for_variable("batch_set_value", x));
  for (std::size_t i = 0; i < arrays.size(); ++i) values[i].first.state().set_by_hand(arrays[i]);
}

Update update(const Variable& x, const Expr& new_x) {
  if (new_x.dtype() != x.dtype())
    fail<DTypeError>("update: variable '", x.name(), "' holds ", x.dtype(), ", but the new value is ", new_x.dtype(),
                     "; cast the new value");
  if (!accepts(new_x.shape(), x.shape()))
    fail<ShapeError>("update: variable '", x.name(), "' has the shape ", x.shape(), ", but the new value has ",
                     new_x.shape());
  return {x, new_x};
}

namespace {

Update moving(const Variable& x, const Expr& new_x) {
  Update u = update(x, new_x);
  u.moves = true;
  return u;
}

}  // namespace

Update update_add(const Variable& x, const Expr& increment) { return moving(x, add(x, increment)); }
Update update_sub(const Variable& x, const Expr& decrement) { return moving(x, sub(x, decrement)); }
Update update(const Variable& x, double new_x) { return update(x, fill(x.shape(), new_x, x.dtype())); }
Update update_add(const Variable& x, double increment) { return moving(x, x.expr() + increment); }
Update update_sub(const Variable& x, double decrement) { return moving(x, x.expr() - decrement); }
Update moving_average_update(const Variable& x, const Expr& value, double momentum) {
  return moving(x, x.expr() * momentum + value * (1.0 - momentum));
}
Update moving_average_update(const Variable& x, const Expr& value, const Expr& momentum) {
  return moving(x, x.expr() * momentum + value * (1.0 - momentum));
}

std::vector<Expr> gradients(const Expr& loss, std::span<const Variable> variables) {
  const std::vector<Expr> wrt(variables.begin(), variables.end());
  return gradients(loss, wrt);
}

}  // namespace syncline
