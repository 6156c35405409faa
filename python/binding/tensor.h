// The Python types Tensor, Variable, SparseVariable and Update: handles of values in a graph, which Keras hangs its own
// attributes on. A Python object owns a reference to its node; no node owns a Python object, so a graph is freed when
// Python forgets it.
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
  // Updates that a step carries out when it computes this tensor: it was made while they were in force. Null: none.
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

// "The variable gets this value": a tensor of the new value, for functions to carry out.
struct UpdateTensor : Tensor {
  explicit UpdateTensor(Update u) : Tensor{u.value, {}}, update(std::move(u)) {}
  Update update;
};

Tensor tensor(Expr expr);
inline bool is_tensor(nb::handle value) { return nb::isinstance<Tensor>(value); }

// "dense_1/kernel:0", "add_12:0"
std::string name_of(const Tensor& x);

// What Keras's control_dependencies means here: while updates are in force, reading their variables gives the new
// values, and a function whose output is a tensor made meanwhile, or eval of it, stores them. Of the calling thread.
void push_updates(std::vector<Update> updates);
void pop_updates();
// The variable's value as the graph is to read it now.
Expr read(const VariableTensor& x);

void bind_tensors(nb::module_& m);
// The parts of the class of tensors that Python's operators stand for.
void bind_operators(nb::class_<Tensor>& tensor);

}  // namespace syncline::python
