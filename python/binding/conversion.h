// Conversion of Python's numbers, sequences and tensors to Shape, Dims and Expr, and back. All functions need the GIL.
// They throw ValueError, ShapeError and DTypeError for values that cannot be converted, and nanobind's python_error for
// errors raised in Python.
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
// "float32", numpy.float32, numpy.dtype("float32"), or a tensor's dtype; None: floatx.
DType dtype_from(nb::handle dtype);
// None: empty.
std::optional<DType> optional_dtype_from(nb::handle dtype);
nb::object name_of_dtype(DType dtype);  // an interned str
// A number or a sequence; None is an unknown dimension.
Shape shape_from(nb::handle shape);
// (2, None, 3)
nb::tuple shape_to(const Shape& shape);
// A number, a sequence whose entries may be tensors, or a tensor of integers.
Dims dims_from(nb::handle shape);
Dim dim_from(nb::handle number);
// An integer; or an array or tensor of one integer, whose value is known while the graph is built. Throws DTypeError
// for any other object.
std::int64_t int64_from(nb::handle number);
// Throw ValueError, which names `what`, for a number outside the range of int.
int int_from(std::int64_t number, const char* what);
int int_from(nb::handle number, const char* what);
// An integer, or a sequence, array or tensor of integers; an entry None becomes `for_none`.
std::vector<std::int64_t> integers_from(nb::handle value, std::optional<std::int64_t> for_none = {});
// None: all axes.
Axes axes_from(nb::handle axis);

// ---- tensors ----
// Throw ValueError, which names `caller`, for any other object.
const Expr& tensor_of(nb::handle x, const char* caller);
const Variable& variable_of(nb::handle x, const char* caller);
// True for lists and tuples that contain a tensor, also in nested ones.
bool holds_tensors(nb::handle sequence);
// A tensor's expression, or a constant of any other value. `dtype`: of the other operand (see `array_beside`).
Expr expr_from(nb::handle value, std::optional<DType> dtype = {});
// Two operands; a value that is not a tensor takes the dtype of the other.
struct Operands {
  Expr x, y;
};
Operands operands_from(nb::handle x, nb::handle y);
std::vector<Expr> exprs_from(nb::handle values);
// The same for values to be stacked: numbers and arrays take the dtype of the tensors.
std::vector<Expr> alike_exprs_from(nb::handle values, std::optional<DType> dtype = {});
// A new value of a variable: converted to its dtype; a single number fills its shape.
Expr new_value_from(const Variable& x, nb::handle value);
// None: empty.
Expr optional_expr_from(nb::handle value);
// A parameter, such as a rate or a bound: a number, an array of known numbers, or a tensor. An array of one number that
// a double represents is a number.
struct Parameter {
  std::optional<double> number;
  std::optional<Array> array;
  Expr tensor;
  bool is_given() const { return number || array || tensor; }
  // The parameter as a tensor of `dtype`. For an integer dtype, known numbers must fit it: throws DTypeError for a
  // fraction and ValueError for a number out of its range. Numbers of a tensor are not known, so its dtype must fit:
  // throws DTypeError for a floating dtype, and for integers that `dtype` need not hold.
  Expr as(DType dtype) const;
  // The same for a bound of numbers of `dtype`: a bound out of its range becomes the end of the range.
  Expr as_bound(DType dtype) const;
  // Throws what `as` throws.
  void check(DType dtype) const;
  // Throws DTypeError for known fractions if `dtype` is an integer dtype.
  void check_whole(DType dtype) const;
  // The known numbers as float64, of which a tensor has none.
  Array known() const;
  // An array or tensor in its own dtype.
  Expr expr() const;
};
Parameter parameter_from(nb::handle value);
// None: not given.
Parameter optional_parameter_from(nb::handle value);

}  // namespace syncline::python
