// Conversion of numbers, sequences, NumPy and SciPy arrays to Array and SparseArray, and back. All functions need the
// GIL. They throw ValueError and DTypeError for values that cannot be converted, and nanobind's python_error for errors
// raised in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "syncline/array.h"
#include "syncline/sparse_array.h"

namespace syncline::python {

namespace nb = nanobind;

nb::object& numpy();
// Invalid if `value` has no attribute `name`.
nb::object attribute(nb::handle value, const char* name);
std::string repr_of(nb::handle value);
bool is_sequence(nb::handle value);  // a list or a tuple
// True for int, float and bool. False for NumPy's float64, a subclass of float, because it has a dtype.
bool is_python_number(nb::handle value);

// The bytes of a C-ordered array are used in place and owned by `keeper`; other values are copied, without keeper.
struct HeldArray {
  Array array;
  nb::object keeper;
};
// Any value that NumPy accepts. Python floats and lists with floats become floatx; Python integers and lists of them
// become int32, or int64 if a value does not fit int32.
HeldArray array_from(nb::handle value);
// The same with dtype `dtype`. NumPy arrays are converted as by `astype`; numbers and lists must fit an integer dtype.
HeldArray array_from(nb::handle value, DType dtype);
// A feed of a placeholder of `dtype`: any value is converted as by `astype`, but a Python int must fit. If the value
// must be converted and `memory`, a free array, has the result's dtype and shape, the result uses that memory.
HeldArray feed_from(nb::handle value, DType dtype, Array memory);
// The other operand of a tensor of `dtype`, as in TensorFlow: it is converted to that dtype and must fit. Throws
// DTypeError for fractions and Python floats if `dtype` is an integer dtype, and for values other than bool if it is
// bool.
HeldArray array_beside(nb::handle value, DType dtype);
// A NumPy array over the same bytes; a NumPy scalar for shape ().
nb::object array_to(Array array);
// True for SciPy's sparse matrices, recognized by `tocsr`.
bool is_scipy_sparse(nb::handle value);
SparseArray sparse_from(nb::handle value);
nb::object sparse_to(const SparseArray& value);

}  // namespace syncline::python
