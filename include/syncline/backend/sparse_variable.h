// Sparse variables: Keras's variable(value) of a SciPy matrix.
//
// The storage is that of three variables (ops/sparse/tensor.h), for as many entries as the first value has or a few
// more; under several ranks it is rank 0's, as a variable's is. The values may be trained: take the gradient with
// respect to values(), which is a variable like any other, of (rows, slots of a row).
#pragma once

#include <array>
#include <string>

#include "syncline/backend/variable.h"
#include "syncline/sparse_array.h"

namespace syncline {

class SparseVariable {
 public:
  SparseVariable() = default;
  SparseVariable(Expr tensor, std::array<Variable, 3> parts) : tensor_(std::move(tensor)), parts_(std::move(parts)) {}
  // Its value in a graph: a sparse tensor.
  operator const Expr&() const { return tensor_; }
  const Expr& expr() const { return tensor_; }
  const std::string& name() const { return tensor_.name(); }
  DType dtype() const { return tensor_.dtype(); }
  const Shape& shape() const { return tensor_.shape(); }
  const Variable& values() const { return parts_[0]; }
  // Values, columns and spans: what a checkpoint has to keep.
  const std::array<Variable, 3>& parts() const { return parts_; }

 private:
  Expr tensor_;
  std::array<Variable, 3> parts_;
};

SparseVariable variable(const SparseArray& value, VariableOptions options = {});

// A copy of the value.
SparseArray get_value(const SparseVariable& x);
// Throws ShapeError or DTypeError if the value does not fit, ValueError if it has more entries than there is memory
// for; nothing is changed then.
void set_value(const SparseVariable& x, const SparseArray& value);

}  // namespace syncline
