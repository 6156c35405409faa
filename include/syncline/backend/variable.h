// Variables: named storage that outlives steps. A Variable is a cheap handle; copies refer to the same storage.
//
// The storage of a variable that is not shared never moves, because plans keep pointers into it. Under several ranks
// each rank reads the whole variable.
// A value set on a rank (set_value, initial values) is replaced by rank 0's at the next step of a function that uses
// the variable. A partial variable is different: each rank holds a part, and the value is the sum of the parts. A
// shared variable has one copy in the memory of a node, and each of the node's ranks updates some of its rows; with
// optimizer_state "split" (syncline/distributed/data_parallel.h) a node may have its ranks' rows only. Not
// thread-safe against a running step of a function that uses the variable.
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

#pragma GCC visibility push(default)
namespace syncline {

// A projection of an optimizer's new value of a variable, for example to non-negative weights or a largest norm.
using Constraint = std::function<Expr(const Expr&)>;

class VariableState {
 public:
  // Memory that the ranks of a node share. `now` has the value; a step writes all rows of `next`, then exchanges both,
  // so a step that fails changes nothing. If the rows are split between nodes, both have those of this node only.
  struct Shared {
    Array now, next;
    std::shared_ptr<void> memory;
    std::uint64_t distribution = 0;  // Session::distribution of the job that shares it
    bool split = false;
    std::int64_t before = 0;  // bytes of the rows of earlier nodes
  };

  VariableState(Array value, std::string name, Constraint constraint = {}, bool partial = false)
      : value_(std::move(value)), name_(std::move(name)), constraint_(std::move(constraint)), partial_(partial) {}
  const std::string& name() const { return name_; }
  bool partial() const { return partial_; }
  // This rank's copy, or its part, or the shared value; of a split variable the rows of this node.
  const Array& value() const { return value_; }
  Array& value() { return value_; }
  // Sets the value on this rank. That of a shared variable is then this rank's own until the next step that uses it.
  void set_by_hand(const Array& value);
  // False if set by hand (also initially) since the ranks last agreed on the value.
  bool agreed() const { return agreed_; }
  void set_agreed(bool agreed) { agreed_ = agreed; }
  const Constraint& constraint() const { return constraint_; }
  void set_constraint(Constraint constraint) { constraint_ = std::move(constraint); }

  // Null unless the variable is shared.
  const Shared* shared() const { return shared_.get(); }
  // The variable is shared from now on; the value stays in memory of this rank until take_shared.
  void share(Shared shared) { shared_ = std::make_unique<Shared>(std::move(shared)); }
  // False if the value is this rank's own copy although the variable is shared.
  bool is_in_shared() const { return value_.raw() == shared_->now.raw(); }
  void take_shared() { value_ = shared_->now; }
  // True if value() has the rows of this node only.
  bool is_split() const { return shared_ && shared_->split && is_in_shared(); }
  // The whole value of a split variable, if this rank holds it (hold_values); otherwise null.
  const Array* whole() const { return whole_ ? &*whole_ : nullptr; }
  void hold(std::optional<Array> whole) { whole_ = std::move(whole); }
  // After a step that has written `next`.
  void exchange();
  // The variable has memory of its own again, with a copy of the value. Throws Error if this rank has a part of it
  // only.
  void unshare();

 private:
  Array value_;
  std::string name_;
  Constraint constraint_;
  std::unique_ptr<Shared> shared_;
  std::optional<Array> whole_;
  bool partial_ = false;
  bool agreed_ = false;
};

class Variable {
 public:
  Variable() = default;
  explicit Variable(Expr leaf) : leaf_(std::move(leaf)) {}
  // The value in a graph.
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

// A value for set_value: an array of the variable's dtype and shape, or a number for a scalar of any dtype.
class Value {
 public:
  Value(Array array) : array_(std::move(array)) {}
  template <class T>
  requires std::is_arithmetic_v<T> Value(T number)
      : array_(Array::scalar(static_cast<double>(number))), number_(true) {}
  // Converts to x's dtype and shape. Throws ShapeError or DTypeError, which name `caller`, if the value does not fit.
  Array for_variable(const std::string& caller, const Variable& x) const;

 private:
  Array array_;
  bool number_ = false;
};

struct VariableOptions {
  std::optional<DType> dtype = {};  // default: the value's; floatx for a number or for numbers to be drawn
  std::string name = {};            // made unique in the session; default "variable"
  Constraint constraint = {};       // applied by optimizers
  // Each rank holds a part, and the value is their sum. An update to the old value plus a sum over the batch's rows
  // then needs no transfer. A value set by hand becomes rank 0's part, and the other parts become zero.
  bool partial = false;
};

// A variable with this initial value (copied).
Variable variable(const Array& value, VariableOptions options = {});
// From an expression that is evaluated at once: an initializer such as random_uniform(...).
Variable variable(const Expr& value, VariableOptions options = {});
Variable variable(double value, VariableOptions options = {});

// Variables filled with one value. Default dtype: floatx.
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
// With a tensor in the shape, zeros(Dims{n, 3}), the result is a tensor, as in Keras, because a variable's shape is
// fixed.
template <std::same_as<Dims> D>
Expr zeros(const D& shape, const TensorOptions& options = {}) {
  return identity(fill(shape, 0, options.dtype.value_or(current_config().floatx)), options.name);
}
template <std::same_as<Dims> D>
Expr ones(const D& shape, const TensorOptions& options = {}) {
  return identity(fill(shape, 1, options.dtype.value_or(current_config().floatx)), options.name);
}
// Ones on the diagonal, zeros elsewhere; two numbers mean (rows, columns). Throws ValueError for other shapes.
Variable eye(const Shape& size, VariableOptions options = {});
template <std::integral T>
Variable eye(T size, VariableOptions options = {}) {
  return eye(Shape{static_cast<std::int64_t>(size)}, std::move(options));
}

// A copy of the value. For a partial variable, and for one that is split between nodes, the call is a collective step:
// every rank must call it, and throws std::bad_alloc on all ranks if one has too little memory.
Array get_value(const Variable& x);
std::vector<Array> batch_get_value(std::span<const Variable> variables);
// The same. `purpose`: what the values are for, as a file's name. Ranks with different purposes throw
// DisagreementError.
std::vector<Array> batch_get_value(std::span<const Variable> variables, std::string_view purpose);
// Gathers the values of those variables that are split between nodes. get_value on a rank with `keep` then needs no
// other rank, until the variable changes or release_values. Collective: with the same variables on every rank. Throws
// std::bad_alloc on all ranks if one has too little memory.
void hold_values(std::span<const Variable> variables, bool keep);
// The same; this rank keeps the values of the variables with keep[i].
void hold_values(std::span<const Variable> variables, const std::vector<bool>& keep);
void release_values(std::span<const Variable> variables);
// Throws ShapeError or DTypeError if the value does not fit; then nothing changes.
void set_value(const Variable& x, const Value& value);
// All or nothing: checks every value before it sets the first.
void batch_set_value(std::span<const std::pair<Variable, Value>> values);
inline void batch_set_value(std::initializer_list<std::pair<Variable, Value>> values) {
  batch_set_value(std::span<const std::pair<Variable, Value>>(values.begin(), values.size()));
}

// Assigns `value` to `target` after the function has run. All updates of a step read the values from before the step.
struct Update {
  Variable target;
  Expr value;
  // The new value is computed from the old one. In C++ a function has one update of a variable; Python's binding joins
  // several, and those that move apply one after the other.
  bool moves = false;
};
Update update(const Variable& x, const Expr& new_x);
Update update_add(const Variable& x, const Expr& increment);
Update update_sub(const Variable& x, const Expr& decrement);
// Numbers are converted to the variable's dtype and fill its shape.
Update update(const Variable& x, double new_x);
Update update_add(const Variable& x, double increment);
Update update_sub(const Variable& x, double decrement);
// x = momentum * x + (1 - momentum) * value
Update moving_average_update(const Variable& x, const Expr& value, double momentum);
Update moving_average_update(const Variable& x, const Expr& value, const Expr& momentum);

// d(sum of loss) / d(x) for each variable: see syncline/backend/gradients.h.
std::vector<Expr> gradients(const Expr& loss, std::span<const Variable> variables);

}  // namespace syncline
#pragma GCC visibility pop
