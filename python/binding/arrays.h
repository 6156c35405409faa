// Numbers, sequences, NumPy and SciPy arrays on one side, Array and SparseArray on the other. All need the GIL. They
// throw ValueError and DTypeError for what cannot be converted, and nanobind's python_error for what Python raised.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "syncline/array.h"
#include "syncline/sparse_array.h"

namespace syncline::python {

namespace nb = nanobind;

nb::object& numpy();
// Invalid if there is none.
nb::object attribute(nb::handle value, const char* name);
std::string repr_of(nb::handle value);
bool is_sequence(nb::handle value);  // a list or a tuple
// Python's own numbers; NumPy's float64 is one of them by inheritance, but has a dtype.
bool is_python_number(nb::handle value);

// The array borrows the bytes of a C-ordered array (`keeper` keeps them) and copies anything else.
struct HeldArray {
  Array array;
  nb::object keeper;
};
// Any value that NumPy understands. Numbers and lists of numbers are of floatx if they have fractions; whole numbers
// are int32, or int64 if int32 does not hold them.
HeldArray array_from(nb::handle value);
// The same of dtype `dtype`. NumPy arrays are converted as `astype` does; numbers and lists must fit an integer dtype.
HeldArray array_from(nb::handle value, DType dtype);
// What a placeholder of `dtype` is fed: any value is converted as `astype` does, but Python's whole numbers must fit.
// Where the value has to be converted and `memory`, a free array, has its dtype and shape, the result takes that
// memory.
HeldArray feed_from(nb::handle value, DType dtype, Array memory);
// The value beside a tensor of `dtype`, as TensorFlow has it: of that dtype, which must hold it. Throws DTypeError for
// fractions and a Python float beside integers, and for all but truth values beside bool.
HeldArray array_beside(nb::handle value, DType dtype);
// A NumPy array over the same bytes; of no axes: a NumPy scalar.
nb::object array_to(Array array);
// SciPy's sparse matrices, which have `tocsr`.
bool is_scipy_sparse(nb::handle value);
SparseArray sparse_from(nb::handle value);
nb::object sparse_to(const SparseArray& value);

}  // namespace syncline::python
