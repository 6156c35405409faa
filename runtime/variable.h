// Variables: named storage that outlives steps. A Variable is a cheap handle; copies name the same storage.
//
// The storage never moves, so plans keep pointers into it. Under several ranks each rank holds the whole variable;
// values set by hand (set_value, initial values) become rank 0's at the next step of a function that uses the variable.
// Not thread-safe against a running step of a function that uses the variable.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/array.h"
#include "ops/expr.h"
#include "ops/leaf.h"

namespace syncline {

class VariableState {
 public:
  VariableState(Array value, std::string name) : value_(std::move(value)), name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  const Array& value() const { return value_; }
  Array& value() { return value_; }
  // Set by hand since the ranks last agreed on it.
  bool changed() const { return changed_; }
  void set_changed(bool changed) { changed_ = changed; }

 private:
  Array value_;
  std::string name_;
  bool changed_ = true;
};

class Variable {
 public:
  Variable() = default;
  explicit Variable(Expr leaf) : leaf_(std::move(leaf)) {}
  // Its value in a graph.
  operator const Expr&() const { return leaf_; }
  const Expr& expr() const { return leaf_; }
  VariableState& state() const { return *leaf_.attrs<VariableLeaf::Attrs>().state; }
  const std::string& name() const { return state().name(); }
  DType dtype() const { return leaf_.dtype(); }
  const Shape& shape() const { return leaf_.shape(); }

 private:
  Expr leaf_;
};

struct VariableOptions {
  std::string name = {};  // made unique in the session; default "variable"
};

// A variable with this initial value (copied).
Variable variable(const Array& value, VariableOptions options = {});
// The same from an expression, which is computed at once: an initializer such as random_uniform(...).
Variable variable(const Expr& value, VariableOptions options = {});

// A copy of the value.
Array get_value(const Variable& x);
std::vector<Array> batch_get_value(std::span<const Variable> variables);
// Throws ShapeError or DTypeError if the value does not fit; nothing is changed then.
void set_value(const Variable& x, const Array& value);
// All or nothing: every value is checked before the first is set.
void batch_set_value(std::span<const std::pair<Variable, Array>> values);

// "x becomes new_x when the function has run." All updates of a step see the values from before it.
struct Update {
  Variable target;
  Expr value;
};
Update update(const Variable& x, const Expr& new_x);
Update update_add(const Variable& x, const Expr& increment);
Update update_sub(const Variable& x, const Expr& decrement);
// x = momentum * x + (1 - momentum) * value
Update moving_average_update(const Variable& x, const Expr& value, double momentum);

}  // namespace syncline
