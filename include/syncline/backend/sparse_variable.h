// Sparse variables: Keras's variable(value) of a SciPy matrix.
//
// Three variables (ops/sparse/tensor.h) store the entries, with capacity for those of the first value or a few more;
// under several ranks rank 0's first value counts, as for dense variables. To train the values, differentiate with
// respect to values(), an ordinary variable of shape (rows, slots of a row).
#pragma once

#include <array>
#include <string>

#include "syncline/backend/variable.h"
#include "syncline/sparse_array.h"

#pragma GCC visibility push(default)
namespace syncline {

class SparseVariable {
 public:
  SparseVariable() = default;
  SparseVariable(Expr tensor, std::array<Variable, 3> parts) : tensor_(std::move(tensor)), parts_(std::move(parts)) {}
  // The value in a graph: a sparse tensor.
  operator const Expr&() const { return tensor_; }
  const Expr& expr() const { return tensor_; }
  const std::string& name() const { return tensor_.name(); }
  DType dtype() const { return tensor_.dtype(); }
  const Shape& shape() const { return tensor_.shape(); }
  const Variable& values() const { return parts_[0]; }
  // Values, columns and spans; a checkpoint must hold all three.
  const std::array<Variable, 3>& parts() const { return parts_; }

 private:
  Expr tensor_;
  std::array<Variable, 3> parts_;
};

SparseVariable variable(const SparseArray& value, VariableOptions options = {});

// A copy of the value.
SparseArray get_value(const SparseVariable& x);
// Throws ShapeError or DTypeError if the value does not fit, ValueError if it exceeds the capacity; then nothing
// changes.
void set_value(const SparseVariable& x, const SparseArray& value);

}  // namespace syncline
#pragma GCC visibility pop
