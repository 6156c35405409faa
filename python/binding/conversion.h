// Between Python's values and ours: numbers, sequences and tensors on one side; Shape, Dims and Expr on the other. All
// need the GIL. They throw ValueError, ShapeError and DTypeError for what cannot be converted, and nanobind's
// python_error for what Python itself raised.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <vector>

#include "python/binding/arrays.h"
#include "runtime/execution/feeds.h"
#include "syncline/axes.h"
#include "syncline/backend/variable.h"
#include "syncline/dims.h"
#include "syncline/expr.h"

namespace syncline::python {

// ---- dtypes and shapes ----
// "float32", numpy.float32, numpy.dtype("float32"), or a tensor's own dtype; None: floatx.
DType dtype_from(nb::handle dtype);
// None: nothing.
std::optional<DType> optional_dtype_from(nb::handle dtype);
nb::object name_of_dtype(DType dtype);  // a str, made once
// A number or a sequence; None stands for an unknown dimension.
Shape shape_from(nb::handle shape);
// (2, None, 3)
nb::tuple shape_to(const Shape& shape);
// The same with tensors among the entries, or a tensor of integers.
Dims dims_from(nb::handle shape);
Dim dim_from(nb::handle number);
// One whole number: also an array or a tensor of one, whose value is known while the graph is built.
std::int64_t int64_from(nb::handle number);
// Throw ValueError naming `what` for a number that an int does not hold.
int int_from(std::int64_t number, const char* what);
int int_from(nb::handle number, const char* what);
// One whole number, or a sequence, an array or a tensor of such; None among them is `for_none`.
std::vector<std::int64_t> integers_from(nb::handle value, std::optional<std::int64_t> for_none = {});
// None: all axes.
Axes axes_from(nb::handle axis);

// ---- tensors ----
// Anything else is refused with a ValueError.
const Expr& tensor_of(nb::handle x, const char* caller);
const Variable& variable_of(nb::handle x, const char* caller);
// Lists and tuples with tensors among their entries, or within those.
bool holds_tensors(nb::handle sequence);
// A tensor's expression; a constant of any other value. `dtype`: that of the tensor beside it (`array_beside`).
Expr expr_from(nb::handle value, std::optional<DType> dtype = {});
// Two operands: what is no tensor takes the dtype of the other.
struct Operands {
  Expr x, y;
};
Operands operands_from(nb::handle x, nb::handle y);
std::vector<Expr> exprs_from(nb::handle values);
// The same for what is to be stacked: numbers and arrays among tensors take the tensors' dtype.
std::vector<Expr> alike_exprs_from(nb::handle values, std::optional<DType> dtype = {});
// What a variable is to become: of its dtype, and one number fills its shape.
Expr new_value_from(const Variable& x, nb::handle value);
// None: empty.
Expr optional_expr_from(nb::handle value);
// A parameter, such as a rate or a bound: a number where it is known while the graph is built (a number, or an array of
// one element) and a double holds it, otherwise a tensor.
struct Parameter {
  std::optional<double> number;
  Expr tensor;
  bool is_given() const { return number || tensor; }
  // In this dtype; tensors of another are cast. Throws DTypeError for a fraction in an integer dtype.
  Expr as(DType dtype) const;
};
Parameter parameter_from(nb::handle value);
// None: not given.
Parameter optional_parameter_from(nb::handle value);

}  // namespace syncline::python
