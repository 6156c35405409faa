// Python's operators and subscripts of tensors.
#include "syncline/backend/math.h"

#include <nanobind/stl/string.h>

#include "python/binding/conversion.h"
#include "python/binding/tensor.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/shape.h"

namespace syncline::python {
namespace {

using Binary = Expr (*)(const Expr&, const Expr&);

// False for None and str, which are left to the methods of the other operand.
bool is_operand(nb::handle y) { return !y.is_none() && !PyUnicode_Check(y.ptr()); }

template <Binary op>
void bind_binary(nb::class_<Tensor>& c, const char* name, const char* reflected) {
  const auto apply = [](nb::handle x, nb::handle y, bool swap) -> nb::object {
    if (!is_operand(y)) return nb::borrow(Py_NotImplemented);
    const Operands o = swap ? operands_from(y, x) : operands_from(x, y);
    return nb::cast(tensor(op(o.x, o.y)));
  };
  const auto def = [&](const char* method, bool swap) {
    const std::string signature = join_text("def ", method, "(self, y: object) -> Tensor");
    c.def(
        method, [apply, swap](nb::handle x, nb::handle y) { return apply(x, y, swap); }, nb::arg("y").none(),
        nb::sig(signature.c_str()));
  };
  def(name, false);
  if (reflected != nullptr) def(reflected, true);
}

Expr logical_or(const Expr& x, const Expr& y) { return logical_not(logical_and(logical_not(x), logical_not(y))); }
Expr logical_xor(const Expr& x, const Expr& y) {
  if (x.dtype() != DType::kBool) fail<DTypeError>("x ^ y: x is ", x.dtype(), "; give tensors of bool");
  return not_equal(x, y);
}

// As in Python, a bound may exceed the axis and the range of 64 bits.
std::optional<Dim> bound(nb::handle value) {
  if (value.is_none()) return {};
  if (is_tensor(value) || !PyLong_Check(value.ptr())) return dim_from(value);
  return Dim(PyNumber_AsSsize_t(value.ptr(), nullptr));
}

Subscript subscript_from(nb::handle key) {
  if (key.is_none()) return NewAxis{};
  if (key.ptr() == Py_Ellipsis) return Ellipsis{};
  if (PySlice_Check(key.ptr())) {
    const nb::object step = key.attr("step");
    Range range{bound(key.attr("start")), bound(key.attr("stop"))};
    if (!step.is_none()) range.step = int64_from(step);
    return range;
  }
  if (PyBool_Check(key.ptr()))
    fail<DTypeError>("x[", nb::cast<bool>(key) ? "True" : "False", "]: a bool is not an index");
  if (nb::isinstance<Tensor>(key)) return expr_from(key);
  if (PyIndex_Check(key.ptr()) != 0) {  // true for every array; PyNumber_Index may fail
    if (const nb::object number = nb::steal(PyNumber_Index(key.ptr())); number.is_valid()) return int64_from(number);
    PyErr_Clear();
  }
  return expr_from(key);
}

Expr get_item(nb::handle x, nb::handle key) {
  std::vector<Subscript> subscripts;
  if (is_sequence(key))  // x[[0, 1]] is x[0, 1], as in TensorFlow
    for (nb::handle entry : nb::borrow<nb::sequence>(key)) subscripts.push_back(subscript_from(entry));
  else subscripts.push_back(subscript_from(key));
  return index(expr_from(x), subscripts);
}

}  // namespace

void bind_operators(nb::class_<Tensor>& c) {
  bind_binary<add>(c, "__add__", "__radd__");
  bind_binary<sub>(c, "__sub__", "__rsub__");
  bind_binary<mul>(c, "__mul__", "__rmul__");
  bind_binary<div>(c, "__truediv__", "__rtruediv__");
  bind_binary<floordiv>(c, "__floordiv__", "__rfloordiv__");
  bind_binary<floormod>(c, "__mod__", "__rmod__");
  bind_binary<pow>(c, "__pow__", "__rpow__");
  bind_binary<matmul>(c, "__matmul__", "__rmatmul__");
  bind_binary<less>(c, "__lt__", nullptr);
  bind_binary<less_equal>(c, "__le__", nullptr);
  bind_binary<greater>(c, "__gt__", nullptr);
  bind_binary<greater_equal>(c, "__ge__", nullptr);
  bind_binary<logical_and>(c, "__and__", "__rand__");
  bind_binary<logical_or>(c, "__or__", "__ror__");
  bind_binary<logical_xor>(c, "__xor__", "__rxor__");
  c.def("__neg__", [](nb::handle x) { return tensor(neg(expr_from(x))); });
  c.def("__abs__", [](nb::handle x) { return tensor(abs(expr_from(x))); });
  c.def("__invert__", [](nb::handle x) { return tensor(logical_not(expr_from(x))); });
  c.def(
      "__getitem__", [](nb::handle x, nb::handle key) { return tensor(get_item(x, key)); }, nb::arg("key").none());
  c.def("__bool__", [](const Tensor& x) -> bool {
    fail<DTypeError>("the tensor '", name_of(x), "' has no truth value while the graph is built; use switch(...), or ",
                     "`x is None` to test for None");
  });
  // Makes NumPy's operators return NotImplemented: array + tensor calls tensor.__radd__.
  c.attr("__array_ufunc__") = nb::none();
  c.def(
      "__array__",
      [](const Tensor& x, nb::handle, nb::handle) {
        PyErr_Format(PyExc_NotImplementedError,
                     "the tensor '%s' has no value while the graph is built, so it cannot become a NumPy array; "
                     "K.eval(x) or a K.function computes it",
                     name_of(x).c_str());
        throw nb::python_error();
      },
      nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none());
  c.attr("__array_priority__") = 100;
  c.attr("__iter__") = nb::none();
}

}  // namespace syncline::python
