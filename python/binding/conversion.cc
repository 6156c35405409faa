#include "python/binding/conversion.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <limits>

#include "ops/config.h"
#include "ops/core/fill.h"
#include "ops/kernels/parallel.h"
#include "ops/leaf.h"
#include "ops/math.h"
#include "ops/shape.h"
#include "python/binding/tensor.h"
#include "runtime/concretize.h"
#include "runtime/evaluate.h"

namespace syncline::python {
namespace {

nb::object& numpy() {
  // Never freed: modules may be gone when static objects are destroyed.
  static nb::object& module = *new nb::object(nb::module_::import_("numpy"));
  return module;
}

nb::object attribute(nb::handle value, const char* name) {
  PyObject* found = PyObject_GetAttrString(value.ptr(), name);
  if (found == nullptr) PyErr_Clear();
  return nb::steal(found);
}

std::string text(nb::handle value) { return nb::cast<std::string>(nb::str(value)); }

bool is_sequence(nb::handle value) { return PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()); }

bool is_tensor(nb::handle value) { return nb::isinstance<Tensor>(value); }

// Python's own numbers; NumPy's float64 is one of them by inheritance, but has a dtype.
bool is_python_number(nb::handle value) {
  return PyFloat_CheckExact(value.ptr()) || PyLong_CheckExact(value.ptr()) || PyBool_Check(value.ptr());
}

// What stands for one number: also a NumPy value without axes, which arrays with axes look like.
bool is_whole_number(nb::handle value) {
  if (PyLong_Check(value.ptr())) return true;
  if (is_tensor(value) || PyIndex_Check(value.ptr()) == 0) return false;
  const nb::object axes = attribute(value, "ndim");
  return !axes.is_valid() || nb::cast<int>(axes) == 0;
}

// The whole numbers of a tensor whose value is known while the graph is built.
std::vector<std::int64_t> known_numbers(nb::handle tensor) {
  const Expr asked = expr_from(tensor);
  const Expr e = concretize({&asked, 1}, {}).front();
  if (!is_integer(e.dtype()) || !is_constant(e))
    fail<ValueError>("a whole number expected that is known while the graph is built, not ", text(nb::repr(tensor)));
  const Array array = evaluate(e).cast(DType::kInt64);
  const auto values = array.values<std::int64_t>();
  return {values.begin(), values.end()};
}

}  // namespace

std::int64_t int64_from(nb::handle value) {
  if (is_tensor(value)) {
    const std::vector<std::int64_t> numbers = known_numbers(value);
    if (numbers.size() == 1) return numbers[0];
  }
  nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) {
    PyErr_Clear();
    fail<ValueError>("a whole number expected, not ", text(nb::repr(value)));
  }
  const std::int64_t number = PyLong_AsLongLong(index.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    fail<ValueError>("the number ", text(value), " does not fit 64 bits");
  }
  return number;
}

int int_from(std::int64_t number, const char* what) {
  if (number != static_cast<int>(number))
    fail<ValueError>(what, ": ", number, " is out of range; give a number of 32 bits");
  return static_cast<int>(number);
}

int int_from(nb::handle value, const char* what) { return int_from(int64_from(value), what); }

std::vector<std::int64_t> integers_from(nb::handle value, std::optional<std::int64_t> for_none) {
  if (is_tensor(value)) return known_numbers(value);
  if (is_whole_number(value)) return {int64_from(value)};
  std::vector<std::int64_t> numbers;
  for (nb::handle entry : nb::iter(value))
    numbers.push_back(entry.is_none() && for_none ? *for_none : int64_from(entry));
  return numbers;
}

namespace {

// What Keras makes of numbers without a dtype.
DType usual_dtype(DType dtype) {
  if (dtype == DType::kFloat64) return current_config().floatx;
  return dtype == DType::kInt64 ? DType::kInt32 : dtype;
}

Array number_array(nb::handle value, std::optional<DType> dtype) {
  if (PyBool_Check(value.ptr())) {
    const Array flag = Array::scalar(value.ptr() == Py_True);
    return dtype ? flag.cast(*dtype) : flag;
  }
  if (PyLong_CheckExact(value.ptr())) return Array::scalar(int64_from(value)).cast(dtype.value_or(DType::kInt32));
  return Array::scalar(PyFloat_AS_DOUBLE(value.ptr())).cast(dtype.value_or(current_config().floatx));
}

// The dtype that a buffer's format names; nothing for dates, texts, complex numbers and the like.
std::optional<DType> dtype_of_format(const Py_buffer& view) {
  const char* format = view.format == nullptr ? "B" : view.format;
  if (*format == '=' || *format == '@' || *format == '<') ++format;
  if (format[0] == '\0' || format[1] != '\0') return {};
  switch (format[0]) {
    case '?': return DType::kBool;
    case 'e': return DType::kFloat16;
    case 'f': return DType::kFloat32;
    case 'd': return DType::kFloat64;
    case 'b': return DType::kInt8;
    case 'B': return DType::kUint8;
    case 'h': return DType::kInt16;
    case 'i': return DType::kInt32;
    case 'l':
    case 'q': return view.itemsize == 8 ? DType::kInt64 : DType::kInt32;
    default: return {};
  }
}

void release_buffer(void* p) noexcept {
  auto* view = static_cast<Py_buffer*>(p);
  PyBuffer_Release(view);
  delete view;
}

// An array over the buffer's bytes, or nothing if they lie otherwise or are of a dtype that we have not.
std::optional<HeldArray> borrow_buffer(nb::handle value) {
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(value.ptr(), view.get(), PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return {};
  }
  const std::optional<DType> dtype = dtype_of_format(*view);
  Shape shape;
  for (int i = 0; i < view->ndim; ++i) shape.push_back(view->shape[i]);
  // Elements that NumPy has not aligned would be read wrongly by vector instructions.
  const bool usable = dtype && reinterpret_cast<std::uintptr_t>(view->buf) % size_of(*dtype) == 0;
  void* bytes = view->buf;
  nb::capsule keeper(view.release(), release_buffer);
  if (!usable) return {};
  return HeldArray{Array::borrow(*dtype, std::move(shape), bytes), std::move(keeper)};
}

HeldArray numpy_array(nb::handle value) {
  if (PyObject_CheckBuffer(value.ptr()) && !PyBytes_Check(value.ptr()) && !PyByteArray_Check(value.ptr()))
    if (std::optional<HeldArray> held = borrow_buffer(value)) return std::move(*held);
  const nb::object array = numpy().attr("require")(value, nb::none(), "CA");  // C-ordered and aligned
  if (std::optional<HeldArray> held = borrow_buffer(array)) return std::move(*held);
  const std::string dtype = text(array.attr("dtype"));
  if (dtype.starts_with(">"))  // big endian: the same numbers in this machine's order
    return numpy_array(array.attr("astype")(array.attr("dtype").attr("newbyteorder")("=")));
  if (dtype.starts_with("uint"))  // no dtype of ours holds every value; int64 does most
    if (std::optional<HeldArray> held = borrow_buffer(array.attr("astype")("int64"))) return std::move(*held);
  fail<DTypeError>("an array of dtype ", dtype, " cannot become a tensor; give numbers (", text(value.type()), ")");
}

bool holds_tensors(nb::handle sequence) {
  for (nb::handle entry : nb::borrow<nb::sequence>(sequence))
    if (is_tensor(entry) || (is_sequence(entry) && holds_tensors(entry))) return true;
  return false;
}

}  // namespace

DType dtype_from(nb::handle dtype) {
  if (dtype.is_none()) return current_config().floatx;
  if (PyUnicode_Check(dtype.ptr())) return parse_dtype(nb::cast<std::string>(dtype));
  return parse_dtype(nb::cast<std::string>(numpy().attr("dtype")(dtype).attr("name")));
}

std::optional<DType> optional_dtype_from(nb::handle dtype) {
  if (dtype.is_none()) return {};
  return dtype_from(dtype);
}

nb::object name_of_dtype(DType dtype) {
  const std::string_view name = name_of(dtype);
  return nb::steal(PyUnicode_InternFromString(std::string(name).c_str()));
}

Shape shape_from(nb::handle shape) { return Shape(integers_from(shape, kUnknown)); }

nb::tuple shape_to(const Shape& shape) {
  nb::list dims;
  for (const std::int64_t dim : shape) {
    if (dim == kUnknown) dims.append(nb::none());
    else dims.append(nb::int_(dim));
  }
  return nb::tuple(dims);
}

Dim dim_from(nb::handle number) {
  if (is_tensor(number)) return Dim(expr_from(number));
  return number.is_none() ? Dim(kUnknown) : Dim(int64_from(number));
}

Dims dims_from(nb::handle shape) {
  if (is_tensor(shape)) return Dims(expr_from(shape));
  if (is_whole_number(shape)) return Dims(shape_from(shape));
  Dims result;
  for (nb::handle entry : nb::iter(shape)) result.append(dim_from(entry));
  return result;
}

Axes axes_from(nb::handle axis) { return axis.is_none() ? Axes() : Axes(integers_from(axis)); }

namespace {

HeldArray converted(nb::handle value, std::optional<DType> dtype, Array memory) {
  if (is_python_number(value)) return {number_array(value, dtype), {}};
  if (is_tensor(value))
    fail<ValueError>("a value expected, but ", text(nb::repr(value)), " is a tensor, whose value is not known yet; ",
                     "K.eval(x) computes it");
  HeldArray held = numpy_array(value);
  const DType given = held.array.dtype();
  const DType wanted = dtype ? *dtype : is_sequence(value) ? usual_dtype(given) : given;
  if (wanted == given) return held;
  if (memory.dtype() != wanted || memory.shape() != held.array.shape())
    memory = Array::uninitialized(wanted, held.array.shape());
  constexpr double kNanoseconds = 1.0;  // an element of large arrays, which lie in memory
  kernels::parallel_for(held.array.size(), kNanoseconds,
                        [&](std::int64_t begin, std::int64_t end) { held.array.cast_into(memory, begin, end); });
  return {std::move(memory), {}};
}

}  // namespace

HeldArray array_from(nb::handle value, std::optional<DType> dtype) { return converted(value, dtype, {}); }

HeldArray array_from(nb::handle value, DType dtype, Array memory) { return converted(value, dtype, std::move(memory)); }

nb::object array_to(Array array) {
  const bool scalar = array.shape().ndim() == 0;
  auto* owner = new Array(std::move(array));
  const nb::capsule keeper(owner, [](void* p) noexcept { delete static_cast<Array*>(p); });
  std::vector<std::size_t> dims(owner->shape().begin(), owner->shape().end());
  const auto bits = static_cast<std::uint8_t>(8 * size_of(owner->dtype()));
  const DType dtype = owner->dtype();
  const auto code = dtype == DType::kBool    ? nb::dlpack::dtype_code::Bool
                    : is_floating(dtype)     ? nb::dlpack::dtype_code::Float
                    : dtype == DType::kUint8 ? nb::dlpack::dtype_code::UInt
                                             : nb::dlpack::dtype_code::Int;
  nb::ndarray<nb::numpy> view(owner->raw(), dims.size(), dims.data(), keeper, nullptr,
                              nb::dlpack::dtype{static_cast<std::uint8_t>(code), bits, 1});
  nb::object result = view.cast();
  if (dtype == DType::kInt64) result = result.attr("view")("int64");  // NumPy has two types of 64 bits: not longlong
  return scalar ? nb::object(result[nb::make_tuple()]) : result;
}

bool is_scipy_sparse(nb::handle value) {
  return !is_tensor(value) && !is_sequence(value) && attribute(value, "tocsr").is_valid();
}

SparseArray sparse_from(nb::handle value) {
  const nb::object csr = value.attr("tocsr")();
  const Array values = array_from(csr.attr("data")).array;
  const Array splits = array_from(csr.attr("indptr"), DType::kInt64).array;
  const Array columns = array_from(csr.attr("indices"), DType::kInt64).array;
  return SparseArray::csr(shape_from(csr.attr("shape")), splits.values<std::int64_t>(), columns.values<std::int64_t>(),
                          values);
}

nb::object sparse_to(const SparseArray& value) {
  const nb::object csr = nb::module_::import_("scipy.sparse").attr("csr_matrix");
  const auto indices = [](std::span<const std::int64_t> numbers) {
    return array_to(Array::from<std::int64_t>(Shape{static_cast<std::int64_t>(numbers.size())}, numbers));
  };
  const nb::tuple parts =
      nb::make_tuple(array_to(value.values().copy()), indices(value.column_indices()), indices(value.row_splits()));
  return csr(parts, nb::arg("shape") = shape_to(value.shape()));
}

Expr expr_from(nb::handle value, std::optional<DType> dtype) {
  if (VariableTensor* variable = nullptr; nb::try_cast(value, variable) && variable != nullptr) return read(*variable);
  if (Tensor* x = nullptr; nb::try_cast(value, x) && x != nullptr) return x->expr;
  if (value.is_none()) fail<ValueError>("a tensor expected, not None");
  // K.prod([x, y]): the entries become the elements along a new first axis.
  if (is_sequence(value) && holds_tensors(value)) return stack(alike_exprs_from(value, dtype));
  HeldArray held = array_from(value, dtype);
  return constant_of(held.keeper.is_valid() ? held.array.copy() : held.array);
}

const Expr& tensor_of(nb::handle x, const char* caller) {
  Tensor* found = nullptr;
  if (!nb::try_cast(x, found) || found == nullptr) fail<ValueError>(caller, ": ", text(nb::repr(x)), " is no tensor");
  return found->expr;
}

const Variable& variable_of(nb::handle x, const char* caller) {
  VariableTensor* found = nullptr;
  if (!nb::try_cast(x, found) || found == nullptr) fail<ValueError>(caller, ": ", text(nb::repr(x)), " is no variable");
  return found->variable;
}

namespace {

// As TensorFlow has it, a number beside a tensor is of the tensor's kind: none with a fraction beside whole numbers,
// and none at all beside truth values.
void check_kind(nb::handle value, DType dtype) {
  if (is_floating(dtype) || value.is_none() || (is_sequence(value) && holds_tensors(value))) return;
  const bool python = is_python_number(value);
  if (dtype == DType::kBool ? !(python ? PyBool_Check(value.ptr()) : array_from(value).array.dtype() == DType::kBool)
                            : python && PyFloat_CheckExact(value.ptr()))
    fail<DTypeError>("the value ", text(nb::repr(value)), " beside a tensor of ", dtype,
                     "; cast the tensor first: K.cast(x, ", dtype == DType::kBool ? "K.floatx()" : "'float32'", ")");
}

}  // namespace

Operands operands_from(nb::handle x, nb::handle y) {
  if (is_tensor(x) && !is_tensor(y)) {
    Expr left = expr_from(x);
    check_kind(y, left.dtype());
    if (is_python_number(y))
      return {left,
              scalar_like(PyFloat_CheckExact(y.ptr()) ? PyFloat_AS_DOUBLE(y.ptr()) : nb::cast<double>(nb::float_(y)),
                          left)};
    return {left, expr_from(y, left.dtype())};
  }
  if (is_tensor(y) && !is_tensor(x)) {
    const Operands swapped = operands_from(y, x);
    return {swapped.y, swapped.x};
  }
  // Arrays and numbers alone, as NumPy has it: the number takes the array's dtype.
  if (is_python_number(y) && !is_python_number(x)) {
    Expr left = expr_from(x);
    return {left, expr_from(y, left.dtype())};
  }
  if (is_python_number(x) && !is_python_number(y)) {
    Expr right = expr_from(y);
    return {expr_from(x, right.dtype()), right};
  }
  return {expr_from(x), expr_from(y)};
}

std::vector<Expr> exprs_from(nb::handle values) {
  std::vector<Expr> exprs;
  for (nb::handle value : nb::iter(values)) exprs.push_back(expr_from(value));
  return exprs;
}

std::vector<Expr> alike_exprs_from(nb::handle values, std::optional<DType> dtype) {
  if (!dtype)
    for (nb::handle value : nb::iter(values))
      if (is_tensor(value)) dtype = nb::cast<Tensor&>(value).expr.dtype();
  std::vector<Expr> exprs;
  for (nb::handle value : nb::iter(values)) exprs.push_back(expr_from(value, dtype));
  return exprs;
}

Expr new_value_from(const Variable& x, nb::handle value) {
  Expr e = expr_from(value, x.dtype());
  if (e.dtype() != x.dtype()) e = cast(e, x.dtype());
  return e.ndim() == 0 && x.shape().ndim() > 0 ? broadcast_like(e, x.expr()) : e;
}

Expr optional_expr_from(nb::handle value) { return value.is_none() ? Expr{} : expr_from(value); }

Expr Parameter::as(DType dtype) const {
  if (number) return scalar(*number, dtype);
  return tensor.dtype() == dtype ? tensor : cast(tensor, dtype);
}

Parameter parameter_from(nb::handle value) {
  if (PyFloat_CheckExact(value.ptr())) return {PyFloat_AS_DOUBLE(value.ptr()), {}};
  if (is_tensor(value) || (is_sequence(value) && holds_tensors(value))) return {{}, expr_from(value)};
  if (value.is_none()) fail<ValueError>("a number or a tensor expected, not None");
  HeldArray held = array_from(value);
  if (held.array.size() == 1) return {held.array.item(), {}};
  return {{}, constant_of(held.keeper.is_valid() ? held.array.copy() : held.array)};
}

Parameter optional_parameter_from(nb::handle value) { return value.is_none() ? Parameter{} : parameter_from(value); }

}  // namespace syncline::python
