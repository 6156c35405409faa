#include "python/binding/arrays.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "base/convert.h"
#include "ops/kernels/parallel.h"
#include "python/binding/binding.h"
#include "python/binding/conversion.h"
#include "python/binding/tensor.h"
#include "syncline/config.h"

namespace syncline::python {
namespace {

std::string text_of(nb::handle value) { return nb::cast<std::string>(nb::str(value)); }

// True if the integer dtype `dtype` represents every element exactly.
bool holds(DType dtype, const Array& values) {
  if (values.dtype() == DType::kFloat16) return holds(dtype, values.cast(DType::kFloat32));
  const Array back = values.cast(dtype).cast(values.dtype());
  return with_dtype(values.dtype(),
                    [&]<class T>(T) { return std::ranges::equal(values.values<T>(), back.values<T>()); });
}

Array number_array(nb::handle value, std::optional<DType> dtype) {
  if (PyBool_Check(value.ptr())) return Array::scalar(value.ptr() == Py_True);
  if (PyFloat_CheckExact(value.ptr())) return Array::scalar(PyFloat_AsDouble(value.ptr()));
  if (dtype && is_floating(*dtype)) return Array::scalar(nb::cast<double>(nb::float_(value)));
  return Array::scalar(int64_from(value));
}

// The dtype that Keras gives to numbers: int64 only for integers outside the range of int32.
DType usual_dtype(const Array& numbers) {
  if (numbers.dtype() == DType::kFloat64) return current_config().floatx;
  return numbers.dtype() == DType::kInt64 && holds(DType::kInt32, numbers) ? DType::kInt32 : numbers.dtype();
}

// The dtype of a buffer's format; empty for dates, texts, complex numbers and other types.
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

// An array over the buffer's bytes; empty if they are not contiguous and aligned, or of an unsupported dtype.
std::optional<HeldArray> borrow_buffer(nb::handle value) {
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(value.ptr(), view.get(), PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return {};
  }
  const std::optional<DType> dtype = dtype_of_format(*view);
  Shape shape;
  for (int i = 0; i < view->ndim; ++i) shape.push_back(view->shape[i]);
  // Vector instructions would read unaligned elements wrongly.
  const bool usable = dtype && reinterpret_cast<std::uintptr_t>(view->buf) % size_of(*dtype) == 0;
  void* bytes = view->buf;
  nb::capsule keeper(view.release(), release_buffer);
  if (!usable) return {};
  return HeldArray{Array::borrow(*dtype, std::move(shape), bytes), std::move(keeper)};
}

// Owns an array's memory for NumPy, which reads it through the buffer protocol.
struct Memory {
  Array array;
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  if (!nb::inst_ready(self)) {  // made by __new__ alone
    view->obj = nullptr;
    PyErr_SetString(PyExc_BufferError, "this object has no memory");
    return -1;
  }
  Array& array = nb::inst_ptr<Memory>(self)->array;
  return PyBuffer_FillInfo(view, self, array.raw(), static_cast<Py_ssize_t>(array.bytes()), /*readonly=*/0, flags);
}

nb::object numpy_dtype(DType dtype) {
  static auto& found = *new std::map<DType, nb::object>;  // never freed, as numpy()
  nb::object& object = found[dtype];
  if (!object.is_valid()) object = numpy().attr("dtype")(std::string(name_of(dtype)));
  return object;
}

HeldArray numpy_array(nb::handle value) {
  if (PyObject_CheckBuffer(value.ptr()) && !PyBytes_Check(value.ptr()) && !PyByteArray_Check(value.ptr()))
    if (std::optional<HeldArray> held = borrow_buffer(value)) return std::move(*held);
  const nb::object array = numpy().attr("require")(value, nb::none(), "CA");  // C-ordered and aligned
  if (std::optional<HeldArray> held = borrow_buffer(array)) return std::move(*held);
  const std::string dtype = text_of(array.attr("dtype"));
  if (dtype.starts_with(">"))  // big endian: convert to this machine's byte order
    return numpy_array(array.attr("astype")(array.attr("dtype").attr("newbyteorder")("=")));
  if (dtype.starts_with("uint")) {  // no supported dtype represents every value; int64 represents most
    std::optional<HeldArray> held = borrow_buffer(array.attr("astype")("int64"));
    if (held && dtype == "uint64" &&
        std::ranges::any_of(held->array.values<std::int64_t>(), [](auto n) { return n < 0; }))
      fail<DTypeError>("an array of dtype uint64 holds numbers beyond int64; cast it to float64");
    if (held) return std::move(*held);
  }
  fail<DTypeError>("a ", repr_of(value.type()), " of dtype ", dtype, " cannot become a tensor; give numbers");
}

HeldArray raw_array(nb::handle value, std::optional<DType> dtype) {
  if (is_tensor(value))
    fail<ValueError>("expected a value, but ", repr_of(value), " is a tensor, which has no value while the graph is ",
                     "built; K.eval(x) computes it");
  return is_python_number(value) ? HeldArray{number_array(value, dtype), {}} : numpy_array(value);
}

HeldArray converted(HeldArray held, DType dtype, Array memory) {
  if (dtype == held.array.dtype()) return held;
  if (memory.dtype() != dtype || memory.shape() != held.array.shape())
    memory = Array::uninitialized(dtype, held.array.shape());
  constexpr double kNanoseconds = 1.0;  // for each element of large arrays, which are not in the cache
  kernels::parallel_for(held.array.size(), kNanoseconds,
                        [&](std::int64_t begin, std::int64_t end) { held.array.cast_into(memory, begin, end); });
  return {std::move(memory), {}};
}

void check_fits(nb::handle value, const Array& array, DType dtype) {
  if (is_integer(dtype) && !holds(dtype, array))
    fail<DTypeError>("the value ", repr_of(value), " does not fit ", dtype, "; give integers in its range, or a ",
                     "NumPy array, which is cast");
}

}  // namespace

nb::object attribute(nb::handle value, const char* name) {
  PyObject* found = PyObject_GetAttrString(value.ptr(), name);
  if (found == nullptr) PyErr_Clear();
  return nb::steal(found);
}

std::string repr_of(nb::handle value) { return text_of(nb::repr(value)); }

bool is_sequence(nb::handle value) { return PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()); }

bool is_python_number(nb::handle value) {
  return PyFloat_CheckExact(value.ptr()) || PyLong_CheckExact(value.ptr()) || PyBool_Check(value.ptr());
}

nb::object& numpy() {
  // Never freed: modules may be gone when static objects are destroyed.
  static nb::object& module = *new nb::object(nb::module_::import_("numpy"));
  return module;
}

HeldArray array_from(nb::handle value) {
  HeldArray held = raw_array(value, {});
  if (!is_python_number(value) && !is_sequence(value)) return held;
  const DType dtype = usual_dtype(held.array);
  return converted(std::move(held), dtype, {});
}

HeldArray array_from(nb::handle value, DType dtype) {
  HeldArray held = raw_array(value, dtype);
  if (is_python_number(value) || is_sequence(value)) check_fits(value, held.array, dtype);
  return converted(std::move(held), dtype, {});
}

HeldArray feed_from(nb::handle value, DType dtype, Array memory) {
  HeldArray held = raw_array(value, dtype);
  if (PyLong_CheckExact(value.ptr())) check_fits(value, held.array, dtype);
  return converted(std::move(held), dtype, std::move(memory));
}

HeldArray array_beside(nb::handle value, DType dtype) {
  HeldArray held = raw_array(value, dtype);
  const bool fits =
      is_floating(dtype) || (dtype == DType::kBool ? held.array.dtype() == dtype
                                                   : !PyFloat_CheckExact(value.ptr()) && holds(dtype, held.array));
  if (!fits)
    fail<DTypeError>("the value ", repr_of(value), " does not fit a tensor of ", dtype, "; cast the tensor: K.cast(x, ",
                     dtype == DType::kBool ? "K.floatx()" : "'float32'", ")");
  return converted(std::move(held), dtype, {});
}

nb::object array_to(Array array) {
  const bool scalar = array.shape().ndim() == 0;
  const nb::tuple shape = shape_to(array.shape());
  const nb::object dtype = numpy_dtype(array.dtype());
  static nb::object& ndarray = *new nb::object(numpy().attr("ndarray"));  // never freed, as numpy()
  nb::object result = ndarray(shape, dtype, Memory{std::move(array)});
  return scalar ? nb::object(result[nb::make_tuple()]) : result;
}

void bind_arrays(nb::module_& m) {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)}, {0, nullptr}};
  nb::class_<Memory>(m, "Memory", nb::type_slots(slots), "The memory of a NumPy array that a function has returned.");
}

bool is_scipy_sparse(nb::handle value) {
  // A failed search for an attribute takes longer than the rest of a small call.
  return !is_tensor(value) && !is_sequence(value) && !PyObject_CheckBuffer(value.ptr()) &&
         attribute(value, "tocsr").is_valid();
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

}  // namespace syncline::python
