// The Python types Tensor, Variable, SparseVariable and Update: handles of values in a graph. Keras sets attributes on
// them. A Python object owns a reference to its node; no node owns a Python object, so a graph is freed with its last
// Python object.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "syncline/backend/sparse_variable.h"
#include "syncline/backend/variable.h"
#include "syncline/expr.h"

namespace syncline::python {

namespace nb = nanobind;

struct Tensor {
  Expr expr;
  // The updates in force when the tensor was made, which a step that computes it applies. Null: none.
  std::shared_ptr<const std::vector<Update>> after;
};

struct VariableTensor : Tensor {
  explicit VariableTensor(Variable v) : Tensor{v.expr(), {}}, variable(std::move(v)) {}
  Variable variable;
};

struct SparseVariableTensor : Tensor {
  explicit SparseVariableTensor(SparseVariable v) : Tensor{v.expr(), {}}, variable(std::move(v)) {}
  SparseVariable variable;
};

// A variable's new value, a tensor; functions apply it.
struct UpdateTensor : Tensor {
  explicit UpdateTensor(Update u) : Tensor{u.value, {}}, update(std::move(u)) {}
  Update update;
};

Tensor tensor(Expr expr);
inline bool is_tensor(nb::handle value) { return nb::isinstance<Tensor>(value); }

// "dense_1/kernel:0", "add_12:0"
std::string name_of(const Tensor& x);

// For Keras's control_dependencies, by thread. While updates are in force, reading their variables gives the new
// values; a function with an output made meanwhile, or eval of such a tensor, stores them.
void push_updates(std::vector<Update> updates);
void pop_updates();
// The variable's expression, or its new value if an update is in force.
Expr read(const VariableTensor& x);

void bind_tensors(nb::module_& m);
// Defines Python's operators on the class.
void bind_operators(nb::class_<Tensor>& tensor);

}  // namespace syncline::python
