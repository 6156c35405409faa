// Variables: named storage that outlives steps. A Variable is a cheap handle; copies name the same storage.
//
// The storage never moves, so plans keep pointers into it. Under several ranks each rank holds the whole variable;
// values set by hand (set_value, initial values) become rank 0's at the next step of a function that uses the variable.
// A partial variable is the exception: its value is the sum of what the ranks hold, each its own part.
// Not thread-safe against a running step of a function that uses the variable.
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "syncline/array.h"
#include "syncline/backend/core.h"
#include "syncline/config.h"
#include "syncline/expr.h"

namespace syncline {

// What an optimizer's new value of a variable is projected with: non-negative weights, a largest norm.
using Constraint = std::function<Expr(const Expr&)>;

class VariableState {
 public:
  VariableState(Array value, std::string name, Constraint constraint = {}, bool partial = false)
      : value_(std::move(value)), name_(std::move(name)), constraint_(std::move(constraint)), partial_(partial) {}
  const std::string& name() const { return name_; }
  bool partial() const { return partial_; }
  // What this rank holds.
  const Array& value() const { return value_; }
  Array& value() { return value_; }
  // Set by hand since the ranks last agreed on it.
  bool changed() const { return changed_; }
  void set_changed(bool changed) { changed_ = changed; }
  const Constraint& constraint() const { return constraint_; }
  void set_constraint(Constraint constraint) { constraint_ = std::move(constraint); }

 private:
  Array value_;
  std::string name_;
  Constraint constraint_;
  bool partial_ = false;
  bool changed_ = true;
};

class Variable {
 public:
  Variable() = default;
  explicit Variable(Expr leaf) : leaf_(std::move(leaf)) {}
  // Its value in a graph.
  operator const Expr&() const { return leaf_; }
  const Expr& expr() const { return leaf_; }
  VariableState& state() const;
  const std::string& name() const { return state().name(); }
  const Constraint& constraint() const { return state().constraint(); }
  DType dtype() const { return leaf_.dtype(); }
  const Shape& shape() const { return leaf_.shape(); }

 private:
  Expr leaf_;
};

// What a variable can be set to: an array of its dtype and shape, or a number, for a scalar of any dtype.
class Value {
 public:
  Value(Array array) : array_(std::move(array)) {}
  template <class T>
  requires std::is_arithmetic_v<T> Value(T number)
      : array_(Array::scalar(static_cast<double>(number))), number_(true) {}
  // As `x` takes it. Throws ShapeError or DTypeError if it does not fit; `caller` is named then.
  Array for_variable(const std::string& caller, const Variable& x) const;

 private:
  Array array_;
  bool number_ = false;
};

struct VariableOptions {
  std::optional<DType> dtype = {};  // the value's unless given; of a number or of numbers to be drawn: floatx
  std::string name = {};            // made unique in the session; default "variable"
  Constraint constraint = {};       // kept for optimizers
  // Under several ranks each holds a part, and their sum is the value: updates need no transfer where the new value is
  // a sum over the batch's rows, plus the old one. A value that is set by hand is rank 0's part, the others' are zero.
  bool partial = false;
};

// A variable with this initial value (copied).
Variable variable(const Array& value, VariableOptions options = {});
// The same from an expression, which is computed at once: an initializer such as random_uniform(...).
Variable variable(const Expr& value, VariableOptions options = {});
Variable variable(double value, VariableOptions options = {});

// Variables of one value. Without a dtype: floatx.
Variable zeros(const Shape& shape, VariableOptions options = {});
Variable ones(const Shape& shape, VariableOptions options = {});
template <std::integral T>
Variable zeros(T size, VariableOptions options = {}) {
  return zeros(Shape{static_cast<std::int64_t>(size)}, std::move(options));
}
template <std::integral T>
Variable ones(T size, VariableOptions options = {}) {
  return ones(Shape{static_cast<std::int64_t>(size)}, std::move(options));
}
// With a tensor in the shape, zeros(Dims{n, 3}), the result is a tensor, as in Keras: a variable's shape is fixed.
template <std::same_as<Dims> D>
Expr zeros(const D& shape, const TensorOptions& options = {}) {
  return identity(fill(shape, 0, options.dtype.value_or(current_config().floatx)), options.name);
}
template <std::same_as<Dims> D>
Expr ones(const D& shape, const TensorOptions& options = {}) {
  return identity(fill(shape, 1, options.dtype.value_or(current_config().floatx)), options.name);
}
// Ones on the diagonal, zeros elsewhere; (rows, columns) with two numbers. Throws ValueError for other shapes.
Variable eye(const Shape& size, VariableOptions options = {});
template <std::integral T>
Variable eye(T size, VariableOptions options = {}) {
  return eye(Shape{static_cast<std::int64_t>(size)}, std::move(options));
}

// A copy of the value. A partial variable's takes a step of all ranks: every rank must ask.
Array get_value(const Variable& x);
std::vector<Array> batch_get_value(std::span<const Variable> variables);
// Throws ShapeError or DTypeError if the value does not fit; nothing is changed then.
void set_value(const Variable& x, const Value& value);
// All or nothing: every value is checked before the first is set.
void batch_set_value(std::span<const std::pair<Variable, Value>> values);
inline void batch_set_value(std::initializer_list<std::pair<Variable, Value>> values) {
  batch_set_value(std::span<const std::pair<Variable, Value>>(values.begin(), values.size()));
}

// "x becomes new_x when the function has run." All updates of a step see the values from before it.
struct Update {
  Variable target;
  Expr value;
  // The old value moved: of several such of one variable each begins where the one before it ended.
  bool moves = false;
};
Update update(const Variable& x, const Expr& new_x);
Update update_add(const Variable& x, const Expr& increment);
Update update_sub(const Variable& x, const Expr& decrement);
// Numbers take the variable's dtype and fill its shape.
Update update(const Variable& x, double new_x);
Update update_add(const Variable& x, double increment);
Update update_sub(const Variable& x, double decrement);
// x = momentum * x + (1 - momentum) * value
Update moving_average_update(const Variable& x, const Expr& value, double momentum);
Update moving_average_update(const Variable& x, const Expr& value, const Expr& momentum);

// d(sum of loss) / d(x) for each variable: see syncline/backend/gradients.h.
std::vector<Expr> gradients(const Expr& loss, std::span<const Variable> variables);

}  // namespace syncline
