#include "python/binding/conversion.h"

#include <nanobind/stl/string.h>

#include <cmath>
#include <limits>

#include "ops/graph/fill.h"
#include "ops/graph/leaf.h"
#include "python/binding/tensor.h"
#include "runtime/graph/concretize.h"
#include "runtime/graph/evaluate.h"
#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"

namespace syncline::python {
namespace {

// True for a single integer, also a NumPy value of shape (). Arrays with axes also pass PyIndex_Check.
bool is_whole_number(nb::handle value) {
  if (PyLong_Check(value.ptr())) return true;
  if (is_tensor(value) || PyIndex_Check(value.ptr()) == 0) return false;
  const nb::object axes = attribute(value, "ndim");
  return !axes.is_valid() || nb::cast<int>(axes) == 0;
}

// The integers of a tensor whose value is known while the graph is built.
std::vector<std::int64_t> known_numbers(nb::handle tensor) {
  const Expr asked = expr_from(tensor);
  if (!is_integer(asked.dtype())) fail<DTypeError>("expected integers, got ", repr_of(tensor));
  const Expr e = concretize({&asked, 1}, {}).front();
  if (!is_constant(e))
    fail<ValueError>("expected integers that are known while the graph is built, got ", repr_of(tensor));
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
    fail<DTypeError>("expected an integer, got ", repr_of(value));
  }
  const std::int64_t number = PyLong_AsLongLong(index.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    fail<ValueError>("the number ", repr_of(value), " does not fit 64 bits");
  }
  return number;
}

int int_from(std::int64_t number, const char* what) {
  if (number != static_cast<int>(number))
    fail<ValueError>(what, ": ", number, " is out of range; give a 32-bit integer");
  return static_cast<int>(number);
}

int int_from(nb::handle value, const char* what) { return int_from(int64_from(value), what); }

std::vector<std::int64_t> integers_from(nb::handle value, std::optional<std::int64_t> for_none) {
  if (is_tensor(value)) return known_numbers(value);
  if (is_whole_number(value) || PyFloat_Check(value.ptr())) return {int64_from(value)};
  std::vector<std::int64_t> numbers;
  for (nb::handle entry : nb::iter(value))
    numbers.push_back(entry.is_none() && for_none ? *for_none : int64_from(entry));
  return numbers;
}

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

// An array that owns its memory.
Array copied(HeldArray held) { return held.keeper.is_valid() ? held.array.copy() : std::move(held.array); }

Expr constant_from(HeldArray held) { return constant_of(copied(std::move(held))); }

// 2^53: a double represents all integers up to it.
constexpr std::int64_t kLargestExact = std::int64_t{1} << std::numeric_limits<double>::digits;

bool is_exact(const Array& number) {
  if (number.dtype() != DType::kInt64) return true;
  const std::int64_t n = number.values<std::int64_t>()[0];
  return -kLargestExact <= n && n <= kLargestExact;
}

}  // namespace

bool holds_tensors(nb::handle sequence) {
  for (nb::handle entry : nb::borrow<nb::sequence>(sequence))
    if (is_tensor(entry) || (is_sequence(entry) && holds_tensors(entry))) return true;
  return false;
}

Expr expr_from(nb::handle value, std::optional<DType> dtype) {
  if (VariableTensor* variable = nullptr; nb::try_cast(value, variable) && variable != nullptr) return read(*variable);
  if (Tensor* x = nullptr; nb::try_cast(value, x) && x != nullptr) return x->expr;
  if (value.is_none()) fail<DTypeError>("expected a tensor, got None");
  // As in K.prod([x, y]): the entries are stacked along a new first axis.
  if (is_sequence(value) && holds_tensors(value)) return stack(alike_exprs_from(value, dtype));
  return constant_from(dtype ? array_beside(value, *dtype) : array_from(value));
}

const Expr& tensor_of(nb::handle x, const char* caller) {
  Tensor* found = nullptr;
  if (!nb::try_cast(x, found) || found == nullptr) fail<ValueError>(caller, ": ", repr_of(x), " is not a tensor");
  return found->expr;
}

const Variable& variable_of(nb::handle x, const char* caller) {
  VariableTensor* found = nullptr;
  if (!nb::try_cast(x, found) || found == nullptr) fail<ValueError>(caller, ": ", repr_of(x), " is not a variable");
  return found->variable;
}

Operands operands_from(nb::handle x, nb::handle y) {
  if (is_tensor(x) && !is_tensor(y)) {
    Expr left = expr_from(x);
    if (!is_python_number(y)) return {left, expr_from(y, left.dtype())};
    const Array number = array_beside(y, left.dtype()).array;
    return {left, is_exact(number) ? scalar(number.item(), left.dtype()) : constant_of(number)};
  }
  if (is_tensor(y) && !is_tensor(x)) {
    const Operands swapped = operands_from(y, x);
    return {swapped.y, swapped.x};
  }
  // Without tensors, as in NumPy, a number takes the dtype of the array.
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
  bool only_numbers = true;
  for (nb::handle value : nb::iter(values)) {
    only_numbers &= is_python_number(value);
    if (!dtype && is_tensor(value)) dtype = nb::cast<Tensor&>(value).expr.dtype();
  }
  if (!dtype && only_numbers) dtype = array_from(values).array.dtype();
  std::vector<Expr> exprs;
  for (nb::handle value : nb::iter(values)) exprs.push_back(expr_from(value, dtype));
  return exprs;
}

Expr new_value_from(const Variable& x, nb::handle value) {
  const bool converted = !is_sequence(value) && (is_python_number(value) || x.dtype() == DType::kBool);
  Expr e = converted && !is_tensor(value) ? constant_from(array_from(value, x.dtype())) : expr_from(value, x.dtype());
  if (e.dtype() != x.dtype()) e = cast(e, x.dtype());
  return e.ndim() == 0 && x.shape().ndim() > 0 ? broadcast_like(e, x.expr()) : e;
}

Expr optional_expr_from(nb::handle value) { return value.is_none() ? Expr{} : expr_from(value); }

namespace {

// The numbers from `low` to below `end` are those of an integer dtype.
struct Range {
  double low, end;
};

Range range_of(DType dtype) {
  return with_number(dtype, []<class T>(T) {
    using Limits = std::numeric_limits<T>;
    return Range{static_cast<double>(Limits::lowest()), std::ldexp(1.0, Limits::digits)};
  });
}

// Throws E for the first known number for which `fits` is false.
template <class E, class Fits>
void check_each(const Parameter& p, DType dtype, const char* advice, Fits fits) {
  const Array numbers = p.known();
  for (const double x : numbers.values<double>())
    if (!fits(x)) fail<E>("the number ", x, " does not fit a tensor of ", dtype, advice);
}

// True if `dtype`, an integer dtype, holds every number of the dtype `other`.
bool holds_all(DType dtype, DType other) {
  if (dtype == other || other == DType::kBool) return true;
  return is_integer(other) && size_of(other) < size_of(dtype);
}

[[noreturn]] void refuse_tensor(const Expr& tensor, DType dtype) {
  fail<DTypeError>("expected a number or a tensor of ", dtype, ", got a tensor of ", tensor.dtype(),
                   "; cast it: K.cast(x, '", dtype, "')");
}

// The numbers in the integer dtype `dtype`; those out of its range become the ends of the range.
Array saturated(const Parameter& p, DType dtype) {
  if (p.array && p.array->dtype() == dtype) return *p.array;  // a double rounds large numbers of int64
  const Range range = range_of(dtype);
  const Array doubles = p.known();
  Array result = p.array ? p.array->cast(dtype) : doubles.cast(dtype);
  with_number(dtype, [&]<class T>(T) {
    T* out = result.data<T>();
    for (const double x : doubles.values<double>()) {
      if (x < range.low) *out = std::numeric_limits<T>::lowest();
      if (x >= range.end) *out = std::numeric_limits<T>::max();
      ++out;
    }
  });
  return result;
}

}  // namespace

Array Parameter::known() const {
  if (number) return Array::scalar(*number);
  return array ? array->cast(DType::kFloat64) : Array(DType::kFloat64, Shape{0});
}

void Parameter::check_whole(DType dtype) const {
  if (is_integer(dtype))
    check_each<DTypeError>(*this, dtype, "; give a whole number, or cast the tensor to a floating dtype",
                           [](double x) { return x == std::trunc(x); });
}

void Parameter::check(DType dtype) const {
  if (!is_integer(dtype) || (array && array->dtype() == dtype)) return;
  if (tensor && !holds_all(dtype, tensor.dtype())) refuse_tensor(tensor, dtype);
  check_whole(dtype);
  const Range range = range_of(dtype);
  check_each<ValueError>(*this, dtype, "; give a number in its range",
                         [&](double x) { return range.low <= x && x < range.end; });
}

Expr Parameter::as(DType dtype) const {
  check(dtype);
  if (number) return scalar(*number, dtype);
  if (array) return constant_of(array->cast(dtype));
  return tensor.dtype() == dtype ? tensor : cast(tensor, dtype);
}

Expr Parameter::as_bound(DType dtype) const {
  if (!is_integer(dtype)) return as(dtype);
  check_whole(dtype);
  if (!tensor) return constant_of(saturated(*this, dtype));
  if (is_floating(tensor.dtype())) refuse_tensor(tensor, dtype);
  if (holds_all(dtype, tensor.dtype())) return as(dtype);
  const Range range = range_of(dtype);
  return cast(clip(tensor, range.low, range.end - 1), dtype);
}

Expr Parameter::expr() const { return array ? constant_of(*array) : tensor; }

Parameter parameter_from(nb::handle value) {
  if (PyFloat_CheckExact(value.ptr())) return {PyFloat_AsDouble(value.ptr()), {}, {}};
  if (is_tensor(value) || (is_sequence(value) && holds_tensors(value))) return {{}, {}, expr_from(value)};
  if (value.is_none()) fail<DTypeError>("expected a number or a tensor, got None");
  HeldArray held = array_from(value);
  if (held.array.size() == 1 && is_exact(held.array)) return {held.array.item(), {}, {}};
  return {{}, copied(std::move(held)), {}};
}

Parameter optional_parameter_from(nb::handle value) { return value.is_none() ? Parameter{} : parameter_from(value); }

}  // namespace syncline::python
